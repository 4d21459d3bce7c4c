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

func testReuse(t *testing.T, open Open) {
	p := open(t, runtime.Limits{})
	t.Run("after success and failure", func(t *testing.T) {
		t.Parallel()
		i := Instance(t, p)
		for n := 1; n <= 3; n++ {
			if got := i.Run(t.Context(), Attempt("count", "")); string(got.Outcome.Output) != strconv.Itoa(n) || got.Broken {
				t.Errorf("run %d: %q", n, got.Outcome.Output)
			}
			if got := i.Run(t.Context(), Attempt("fail_retry", "x")); got.Broken {
				t.Error("a failure broke the sandbox")
			}
		}
	})
	t.Run("replaced after a trap", func(t *testing.T) {
		t.Parallel()
		var reasons []string
		s := runtime.NewSandbox(p, func(reason string) { reasons = append(reasons, reason) })
		defer func() { _ = s.Close(context.Background()) }()
		for _, entry := range []string{"count", "trap", "fail_trap", "count", "count"} {
			s.Run(t.Context(), Attempt(entry, `{"code":"made-up"}`))
		}
		if got := s.Run(t.Context(), Attempt("count", "")); string(got.Output) != "3" || !slices.Equal(reasons, []string{"trap", "failed"}) {
			t.Errorf("%q after replacements for %q", got.Output, reasons)
		}
	})
	t.Run("the output is a copy", func(t *testing.T) {
		t.Parallel()
		i := Instance(t, p)
		first := i.Run(t.Context(), Attempt("echo", "first")).Outcome.Output
		i.Run(t.Context(), Attempt("echo", "other"))
		if string(first) != "first" {
			t.Errorf("the first output became %q", first)
		}
	})
	t.Run("attempts are reused", func(t *testing.T) {
		t.Parallel()
		i := Instance(t, p)
		at := Attempt("fail_permanent", "no")
		i.Run(t.Context(), at)
		at.Cancel()
		limits := at.Limits
		at.Reset()
		at.Entry, at.Limits = "remaining", limits
		if got := i.Run(t.Context(), at).Outcome; string(got.Output) != "-1" {
			t.Errorf("after a reset: %+v", got)
		}
	})
}

// testHammer has many goroutines, each with a sandbox of the same plugin, run
// everything at once, deadlines and cancellations included.
func testHammer(t *testing.T, open Open) {
	p := open(t, runtime.Limits{})
	const goroutines, runs = 8, 40
	entries := []string{"echo", "pull", "trap", "spin", "fail_retry", "log_echo", "progress", "echo", "wait_cancel", "count"}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			s := runtime.NewSandbox(p, nil)
			defer func() { _ = s.Close(context.Background()) }()
			for r := range runs {
				entry := entries[(g+r)%len(entries)]
				input := fmt.Sprintf("%d-%d", g, r)
				at := Attempt(entry, input)
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
				got := s.Run(ctx, at)
				cancel(nil)
				if (entry == "echo" || entry == "pull") && (got.Kind != jobhost.OutcomeSucceeded || string(got.Output) != input) {
					t.Errorf("%s: %v %q", entry, got.Kind, got.Output)
				}
			}
		})
	}
	wg.Wait()
}
