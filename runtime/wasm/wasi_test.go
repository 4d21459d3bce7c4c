package wasm_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

func TestExit(t *testing.T) {
	t.Parallel()
	p := load(t, newEngine(t), guests.Exit, runtime.Limits{})
	for _, code := range []string{"0", "1", "75", "255", "4294967295", "4026531839"} {
		got := runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt("", code))
		f := got.Outcome.Failure
		if f == nil || f.Code != jobhost.FailExit || f.Message != "the guest exited with code "+code || !f.Retryable || got.Replace != "" {
			t.Errorf("exit(%s): %+v, replaced for %q", code, f, got.Replace)
		}
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	i := runtimetest.Instance(t, load(t, newEngine(t), guests.Exit, runtime.Limits{}))
	at := runtimetest.Attempt("streams", "one\ntwo\x1b[0m\nthree")
	at.Limits.LineBytes = 12
	if got := i.Run(t.Context(), at).Outcome; got.Kind != jobhost.OutcomeSucceeded {
		t.Fatalf("%+v", got.Failure)
	}
	want := "info one\ninfo two\\x1b[0m\nwarn half and hal …(cut)\ninfo three\nwarn open end\n"
	if lines, dropped := at.TakeLog(); string(lines) != want || dropped != 0 {
		t.Errorf("log %q, dropped %d", lines, dropped)
	}

	// A line without an end takes no more memory than a line may.
	at = runtimetest.Attempt("flood", strings.Repeat("x", 1024))
	at.Limits.LineBytes = 100
	i.Run(t.Context(), at)
	if lines, _ := at.TakeLog(); len(lines) > 150 || bytes.Count(lines, []byte("\n")) != 1 {
		t.Errorf("log %q", lines)
	}
}

func TestSleepIsStopped(t *testing.T) {
	t.Parallel()
	p := load(t, newEngine(t), guests.Exit, runtime.Limits{})
	if late := runtimetest.Lateness(t, p, func() *hostcall.Attempt { return runtimetest.Attempt("sleep", "") }); late > runtimetest.MaxLateness {
		t.Errorf("stopped %v late", late)
	}
}

// TestCallsAreStopped: calls of the host that take long are few between two
// looks of the guest at its meter, and so it is stopped by the calls, too.
func TestCallsAreStopped(t *testing.T) {
	t.Parallel()
	p := load(t, newEngine(t), guests.Calls, runtime.Limits{})
	for _, entry := range []string{"random", "poll", "log", "fail"} {
		if late := runtimetest.Lateness(t, p, func() *hostcall.Attempt { return runtimetest.Attempt(entry, "") }); late > runtimetest.MaxLateness {
			t.Errorf("%s was stopped %v late", entry, late)
		}
	}
}

// TestFillsOfAKernelAreStopped: what the kernel of an Extism plugin does for it in
// wasm has no meter.
func TestFillsOfAKernelAreStopped(t *testing.T) {
	t.Parallel()
	p := opener(guests.ExtismFills)(t, runtime.Source{Entry: "reset"})
	for _, entry := range []string{"reset", "reuse"} {
		if late := runtimetest.Lateness(t, p, func() *hostcall.Attempt { return runtimetest.Attempt(entry, "") }); late > runtimetest.MaxLateness {
			t.Errorf("%s was stopped %v late", entry, late)
		}
	}
}

func TestRandomIsFresh(t *testing.T) {
	t.Parallel()
	p := load(t, newEngine(t), guests.Exit, runtime.Limits{})
	seen := map[string]bool{}
	for range 3 {
		i := runtimetest.Instance(t, p)
		for range 3 {
			seen[string(i.Run(t.Context(), runtimetest.Attempt("random", "")).Outcome.Output)] = true
		}
	}
	if len(seen) != 9 {
		t.Errorf("%d different numbers out of 9", len(seen))
	}
}

// TestEnvironment: a command finds what its worker says, job after job, and what tells of
// the job only if it is to.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, bare := range []bool{false, true} {
		p, err := newEngine(t).Load(t.Context(), runtime.Source{
			Worker: "w", Bytes: guests.Command,
			Env: map[string]string{"c": "new\nline", "a": "text", "b": `escap " ing`}, System: runtime.System{BareEnv: bare},
		})
		if err != nil {
			t.Fatal(err)
		}
		i := runtimetest.Instance(t, p)
		for range 2 {
			got := string(i.Run(t.Context(), runtimetest.Attempt("", "environ\n")).Outcome.Output)
			const own = "a=text\nb=escap \" ing\nc=new\nline\n"
			if !strings.HasPrefix(got, own) || strings.Contains(got, "JOBHOST_WORKER=") == bare {
				t.Errorf("bare %t: %q", bare, got)
			}
			if bare && got != own {
				t.Errorf("%q", got)
			}
		}
	}
}
