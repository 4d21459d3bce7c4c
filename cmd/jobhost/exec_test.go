package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// execute runs the program in process.
func execute(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(stdin), &out, &errs)
	return out.String(), errs.String(), code
}

// guest writes a module into a folder of the test's.
func guest(t *testing.T, module []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest.wasm")
	if err := os.WriteFile(path, module, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExecKeepsTheOrderOfInputs(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var lines []string
	for i := range 500 {
		lines = append(lines, fmt.Sprint("line ", i))
	}
	in := strings.Join(lines, "\n") + "\n"
	stdout, stderr, code := execute(t, in, "exec", guest(t, guests.Echo), "--lines", "-j", "8")
	if code != 0 || stdout != in {
		t.Errorf("exit code %d, %d bytes out for %d in; stderr:\n%s", code, len(stdout), len(in), stderr)
	}
}

func TestExecFailures(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	module := guest(t, guests.Outcomes)
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		args   []string
		stdout string
		stderr string
		code   int
	}{
		{"text", []string{module, "--entry", "echo", "--text", "a", "b"}, "a\nb\n", "2 ok, 0 failed", 0},
		{"file", []string{module, "--entry", "echo", file}, "from a file\n", "", 0},
		{"trap", []string{module, "--entry", "trap", "--text", "x"}, "", "trap", 1},
		{"deadline", []string{module, "--entry", "spin", "--timeout", "50ms", "--text", "x"}, "", "timeout", 1},
		{"no such entry", []string{module, "--entry", "nothing", "--text", "x"}, "", "nothing", 1},
		{"good inputs before a missing one", []string{module, "--entry", "echo", file, file + "-missing"}, "from a file\n", "no such file", 1},
		{"missing module", []string{"./missing.wasm"}, "", "no such file", 1},
		{"too many at once", []string{module, "-j", "0"}, "", "--jobs", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := execute(t, "", append([]string{"exec"}, tt.args...)...)
			if code != tt.code || stdout != tt.stdout || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit code %d, want %d; stdout %q, want %q; stderr should say %q:\n%s",
					code, tt.code, stdout, tt.stdout, tt.stderr, stderr)
			}
		})
	}
}

func TestInspectListsCapabilities(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	stdout, stderr, code := execute(t, "", "worker", "inspect", guest(t, guests.Outcomes))
	if code != 0 || !strings.Contains(stdout, "jobhost1: emit") || !strings.Contains(stdout, "fail_permanent") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	stdout, _, code = execute(t, "", "worker", "inspect", guest(t, guests.Echo))
	if code != 0 || !strings.Contains(stdout, "it can only compute") {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
}

func TestBenchReports(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, args := range [][]string{
		{"--jobs", "200", "--producers", "8"},
		{"--jobs", "20", "--producers", "2", "--sequential"},
		{"--jobs", "0", "--backlog", "200", "--memory"},
		{"--jobs", "100", "--batch", "10", "--relaxed"},
	} {
		args = append([]string{"bench", "-o", "json", "--dir", t.TempDir()}, args...)
		stdout, stderr, code := execute(t, "", args...)
		if code != 0 || !strings.Contains(stdout, `"jobs_per_second":`) || !strings.Contains(stdout, `"failed":0`) {
			t.Errorf("%v: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
	}
}

// TestExecNativeWithoutDigest: what was built here is tried before its digest is pinned.
func TestExecNativeWithoutDigest(t *testing.T) {
	t.Parallel()
	c := newConsole(t, struct{ jobhost.Server }{})
	dir := t.TempDir()
	c.env.options.manifest = filepath.Join(dir, "manifest.toml")
	text := "[worker.native]\nplugin = \"native\"\nabi = \"process\"\nbuild = \"./build.sh\"\n"
	if err := errors.Join(os.WriteFile(c.env.options.manifest, []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "native"), []byte("#!/bin/sh\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if w, err := execWorker(c.env, "native"); err != nil || w.Name != "native" {
		t.Errorf("got %q, %v", w.Name, err)
	}
}
