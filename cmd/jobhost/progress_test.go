package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/internal/testing/guests"
)

func TestProgressLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                string
		columns             int
		total, done, failed int
		took                time.Duration
		want                string
	}{
		{"nothing yet", 60, 400, 0, 0, 0, "  0% " + bar(0, 40) + " 0/400"},
		{"some", 60, 400, 100, 0, 10 * time.Second, " 25% " + bar(7, 31) + " 100/400, 10/s, 30s left"},
		{"slow", 60, 4, 1, 0, 10 * time.Second, " 25% " + bar(8, 34) + " 1/4, 0.1/s, 30s left"},
		{"failures", 60, 4, 2, 1, 2 * time.Second, " 50% " + bar(12, 25) + " 2/4, 1 failed, 1.0/s, 2s left"},
		{"all", 200, 4, 4, 0, time.Second, "100% " + bar(40, 40) + " 4/4, 4.0/s, 0s left"},
		{"no room for a bar", 30, 400, 100, 0, 10 * time.Second, "100/400, 10/s, 30s left"},
		{"no room for the end", 20, 400, 100, 0, 10 * time.Second, "100/400, 10/s"},
		{"no room for the speed", 10, 400, 100, 0, 10 * time.Second, "100/400"},
		{"no room", 3, 400, 100, 0, 10 * time.Second, ""},
		{"total not known", 60, 0, 100, 2, 10 * time.Second, "100 done, 2 failed, 10/s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := progress{
				total: tt.total, done: tt.done, failed: tt.failed,
				began: testTime, now: func() time.Time { return testTime.Add(tt.took) },
			}
			if got := p.line(tt.columns); got != tt.want {
				t.Errorf("line is\n%q, want\n%q", got, tt.want)
			}
		})
	}
}

func bar(full, room int) string {
	return strings.Repeat("█", full) + strings.Repeat("░", room-full)
}

func TestProgressLineFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(0, 1e9).Draw(t, "total")
		most := total
		if total == 0 {
			most = 1e9
		}
		done := rapid.IntRange(0, most).Draw(t, "done")
		p := progress{
			total: total, done: done, failed: rapid.IntRange(0, done).Draw(t, "failed"), began: testTime,
			now: func() time.Time { return testTime.Add(time.Duration(rapid.Int64Min(0).Draw(t, "took"))) },
		}
		columns := rapid.IntRange(-1, 200).Draw(t, "columns")
		if line := p.line(columns); utf8.RuneCountInString(line) > max(columns, 0) {
			t.Fatalf("%q is wider than %d columns", line, columns)
		}
	})
}

// screen returns the lines that a terminal shows after out was written to it.
func screen(out string) []string {
	lines := []string{""}
	line, column := []rune(nil), 0
	for out != "" {
		rest, erased := strings.CutPrefix(out, eraseToEnd)
		r, size := utf8.DecodeRuneInString(out)
		switch {
		case erased:
			line = line[:column]
			size = len(out) - len(rest)
		case r == '\r':
			column = 0
		case r == '\n':
			lines, line, column = append(lines, ""), nil, 0
		default:
			line = append(line[:column:len(line)], append([]rune{r}, line[min(column+1, len(line)):]...)...)
			column++
		}
		lines[len(lines)-1] = string(line)
		out = out[size:]
	}
	return lines
}

// varying are the ends of lines that differ from run to run, or are for other
// tests to look at.
var varying = regexp.MustCompile(`^(jobhost: (?:[abc]:|.* failed,)) .*`)

func TestProgressLeavesTheOutputAlone(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	module := guest(t, guests.Outcomes)
	tests := []struct {
		name       string
		entry      string
		stdoutToo  bool // is the terminal
		wantLines  []string
		wantStdout string
	}{
		{"results elsewhere", "echo", false, []string{"jobhost: 3 ok, 0 failed, …", ""}, "a\nb\nc\n"},
		{"results between", "echo", true, []string{"a", "b", "c", "jobhost: 3 ok, 0 failed, …", ""}, ""},
		{"failures between", "fail_permanent", false, []string{"jobhost: a: …", "jobhost: b: …", "jobhost: c: …", "jobhost: 0 ok, 3 failed, …", ""}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, terminal bytes.Buffer
			e := newEnv(strings.NewReader(""), &out, &terminal)
			e.stderr.terminal = true
			if tt.stdoutToo {
				e.stdout = e.stderr
			}
			e.run(t.Context(), []string{"exec", module, "--entry", tt.entry, "--text", "a", "b", "c", "-j", "1"})
			if out.String() != tt.wantStdout {
				t.Errorf("stdout %q", out.String())
			}
			got := screen(terminal.String())
			for i := range got {
				got[i] = varying.ReplaceAllString(got[i], "$1 …")
			}
			if !slices.Equal(got, tt.wantLines) {
				t.Errorf("the terminal shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.wantLines, "\n"))
			}
		})
	}
}

func TestWhereProgressIsShown(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name            string
		terminal, quiet bool
		term            string
		total           int
		want            bool
	}{
		{name: "a terminal", terminal: true, want: true},
		{name: "no terminal"},
		{name: "one input", terminal: true, total: 1},
		{name: "quiet", terminal: true, quiet: true},
		{name: "a dumb terminal", terminal: true, term: "dumb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var errOut bytes.Buffer
			e := newEnv(strings.NewReader(""), io.Discard, &errOut)
			e.stderr.terminal = tt.terminal
			e.getenv = func(string) string { return tt.term }
			newProgress(e, tt.quiet, tt.total).draw()
			if shown := errOut.Len() > 0; shown != tt.want {
				t.Errorf("wrote %q", errOut.String())
			}
		})
	}
}

func TestExecInterrupted(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	// Nothing comes after the first line, and nothing can end the read.
	stdin, typing := io.Pipe()
	t.Cleanup(func() { _ = typing.Close() })
	var errOut bytes.Buffer
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	e := newEnv(stdin, writerFunc(func(p []byte) (int, error) {
		interrupt() // as the first result is printed
		return len(p), nil
	}), &errOut)
	go func() { _, _ = fmt.Fprintln(typing, "line") }()
	code := e.run(ctx, []string{"exec", guest(t, guests.Echo), "--lines"})
	if want := "jobhost: interrupted: 1 ok, 0 failed, the others have no result\n"; code != exitFailed || errOut.String() != want {
		t.Errorf("exit code %d, stderr %q, want %q", code, errOut.String(), want)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
