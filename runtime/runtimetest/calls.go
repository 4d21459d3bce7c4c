package runtimetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// run runs one attempt in a fresh instance and expects success.
func run(t *testing.T, p runtime.Plugin, at *hostcall.Attempt) string {
	t.Helper()
	got := Instance(t, p).Run(t.Context(), at).Outcome
	if got.Kind != jobhost.OutcomeSucceeded {
		t.Fatalf("outcome %v: %+v", got.Kind, got.Failure)
	}
	return string(got.Output)
}

func testCalls(t *testing.T, s Subject) {
	p := s.Open(t, runtime.Source{})
	t.Run("info", func(t *testing.T) { t.Parallel(); testInfo(t, p) })
	t.Run("log", func(t *testing.T) { t.Parallel(); testLog(t, p) })
	t.Run("emit", func(t *testing.T) {
		t.Parallel()
		at, s := attemptWith(&Services{}, "emit", "news")
		if got := run(t, p, at); got != "0" || !slices.Equal(s.emits, []string{"news"}) {
			t.Errorf("emit answered %s, emitted %q", got, s.emits)
		}
	})
	t.Run("metric", func(t *testing.T) {
		t.Parallel()
		at, s := attemptWith(&Services{}, "metric", `n{b="2",a="1"}`)
		if got := run(t, p, at); got != "0" || !slices.Equal(s.metrics, []string{`n{a="1",b="2"}`}) || !slices.Equal(s.observed, []float64{2.5}) {
			t.Errorf("observe answered %s: %q %v", got, s.metrics, s.observed)
		}
		if got := run(t, p, Attempt("metric", "not a name")); got != "-5" {
			t.Errorf("a bad name was answered with %s", got)
		}
	})
	t.Run("progress", func(t *testing.T) {
		t.Parallel()
		at, s := attemptWith(&Services{}, "progress", "1000")
		run(t, p, at)
		if n := len(s.progress); n < 2 || n > 100 || s.progress[0] != [2]int64{1, 1000} || s.progress[n-1] != [2]int64{1000, 1000} {
			t.Errorf("progress %v", s.progress)
		}
	})
	t.Run("without services", func(t *testing.T) {
		t.Parallel()
		for entry, want := range map[string]string{"emit": "0", "metric": "-2", "progress": ""} {
			at := Attempt(entry, "7")
			at.Services = nil
			if got := run(t, p, at); got != want {
				t.Errorf("%s answered %s, want %s", entry, got, want)
			}
		}
	})
}

func attemptWith(s *Services, entry, input string) (*hostcall.Attempt, *Services) {
	at := Attempt(entry, input)
	at.Services = s
	return at, s
}

func testInfo(t *testing.T, p runtime.Plugin) {
	for key, want := range map[string]string{
		"job.id": "job-1", "job.task": "2", "job.tasks": "3", "job.attempt": "4", "job.priority": "high",
		"worker": "outcomes", "trace": "trace-1",
		"config.greeting": "hello", "secret.key": "s3cret", "label.team": "blue",
		"config.nope": "-1", "secret.nope": "-2", "label.nope": "-1", "job.nope": "-1", "nope": "-1", "": "-1", "path.x": "-1",
		strings.Repeat("k", hostcall.MaxKeyBytes+1): "-5",
	} {
		if got := run(t, p, Attempt("info", key)); got != want {
			t.Errorf("info(%.20q) = %q, want %q", key, got, want)
		}
	}
}

func testLog(t *testing.T, p runtime.Plugin) {
	at := Attempt("log_echo", "a\x1b[2Jb\r\nc\x00\u202e\xff é\n")
	run(t, p, at)
	if lines, dropped := at.TakeLog(); string(lines) != `info a\x1b[2Jb\r\nc\x00\u202e\xff é`+"\n" || dropped != 0 {
		t.Errorf("log %q, dropped %d", lines, dropped)
	}
	at = Attempt("log_levels", "")
	at.Limits.LogLevel = hostcall.LevelWarn
	if level := run(t, p, at); level != "4" {
		t.Errorf("log_level = %s", level)
	}
	if lines, dropped := at.TakeLog(); string(lines) != "warn w\nerror e\n" || dropped != 0 {
		t.Errorf("log %q, dropped %d", lines, dropped)
	}
}
