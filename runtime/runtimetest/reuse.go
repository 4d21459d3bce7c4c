package runtimetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func testReuse(t *testing.T, s Subject) {
	src := runtime.Source{Isolation: runtime.IsolateInstance}
	if s.Once {
		src.Isolation = runtime.IsolateJob
	}
	p := s.Open(t, src)
	if s.can("count") && !s.Once {
		t.Run("after success and failure", func(t *testing.T) { t.Parallel(); testCount(t, s, p) })
		t.Run("replaced after a trap", func(t *testing.T) { t.Parallel(); testReplace(t, s, p) })
	}
	t.Run("the output is a copy", func(t *testing.T) {
		t.Parallel()
		i := Instance(t, p)
		first := i.Run(t.Context(), s.Call("echo", "first")).Outcome.Output
		i.Run(t.Context(), s.Call("echo", "other"))
		if string(first) != "first" {
			t.Errorf("the first output became %q", first)
		}
	})
	t.Run("attempts are reused", func(t *testing.T) {
		t.Parallel()
		i := Instance(t, p)
		at := s.Call("fail_permanent", "no")
		i.Run(t.Context(), at)
		at.Cancel()
		limits := at.Limits
		at.Reset()
		next := s.Call("ok", "")
		if !s.can("ok") {
			next = s.Call("", "")
		}
		at.Entry, at.Input, at.Limits = next.Entry, next.Input, limits
		if got := i.Run(t.Context(), at).Outcome; string(got.Output) != "ok" || at.Remaining() != hostcall.NoDeadline {
			t.Errorf("after a reset: %+v", got)
		}
	})
}

// testCount: an instance that isn't reset keeps its state.
func testCount(t *testing.T, s Subject, p runtime.Plugin) {
	i := Instance(t, p)
	for n := 1; n <= 3; n++ {
		if got := i.Run(t.Context(), s.Call("count", "")); string(got.Outcome.Output) != strconv.Itoa(n) || got.Replace != "" {
			t.Errorf("run %d: %q, replaced for %q", n, got.Outcome.Output, got.Replace)
		}
		if got := i.Run(t.Context(), s.Call("fail_retry", "x")); got.Replace != "" && s.FailCode == "" {
			t.Errorf("a failure broke the sandbox: %s", got.Replace)
		}
	}
}

func testReplace(t *testing.T, s Subject, p runtime.Plugin) {
	var reasons []runtime.Reason
	sandbox := runtime.NewSandbox(p, func(r *runtime.Result) {
		if r.Replace != "" {
			reasons = append(reasons, r.Replace)
		}
	})
	defer func() { _ = sandbox.Close(context.Background()) }()
	for _, entry := range []string{"count", "trap", "count", "count"} {
		sandbox.Run(t.Context(), s.Call(entry, ""))
	}
	if got := sandbox.Run(t.Context(), s.Call("count", "")); string(got.Output) != "3" || !slices.Equal(reasons, []runtime.Reason{runtime.ReplacedTrap}) {
		t.Errorf("%q after replacements for %q", got.Output, reasons)
	}
}

// testHammer has many goroutines, each with a sandbox of the same plugin, run
// everything concurrently, including deadlines and cancellations.
func testHammer(t *testing.T, s Subject) {
	p := s.Open(t, runtime.Source{})
	const goroutines, runs = 8, 40
	entries := slices.DeleteFunc(
		[]string{"echo", "pull", "trap", "spin", "fail_retry", "log_echo", "progress", "echo", "wait_cancel", "count"},
		func(entry string) bool { return !s.can(entry) })
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			sandbox := runtime.NewSandbox(p, nil)
			defer func() { _ = sandbox.Close(context.Background()) }()
			for r := range runs {
				hammer(t, s, sandbox, entries[(g+r)%len(entries)], fmt.Sprintf("%d-%d", g, r), r)
			}
		})
	}
	wg.Wait()
}

func hammer(t *testing.T, s Subject, sandbox *runtime.Sandbox, entry, input string, r int) {
	at := s.Call(entry, input)
	if entry != "echo" && entry != "pull" {
		at.Deadline = time.Now().Add(time.Duration(1+r%3) * time.Millisecond)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Duration(r%4)*time.Millisecond, func() {
		if entry == "spin" {
			cancel(hostcall.ErrCancelled)
		}
		at.Cancel()
	})
	got := sandbox.Run(ctx, at)
	cancel(nil)
	if (entry == "echo" || entry == "pull") && (got.Kind != jobhost.OutcomeSucceeded || string(got.Output) != input) {
		t.Errorf("%s: %v %q %+v", entry, got.Kind, got.Output, got.Failure)
	}
}
