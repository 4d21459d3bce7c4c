package runtimetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// MaxLateness is how long after its deadline a guest may still run.
const MaxLateness = 100 * time.Millisecond

func testStop(t *testing.T, s Subject) {
	p := s.Open(t, runtime.Source{})
	t.Run("deadline", func(t *testing.T) { t.Parallel(); testDeadline(t, s, p) })
	t.Run("deadline before the run", func(t *testing.T) {
		t.Parallel()
		at := s.Call("", "")
		at.Deadline = time.Now().Add(-time.Second)
		got := Instance(t, p).Run(t.Context(), at)
		if f := got.Outcome.Failure; f == nil || f.Code != jobhost.FailTimeout || got.Replace != "" {
			t.Errorf("%+v, replaced for %q", f, got.Replace)
		}
	})
	if s.can("wait_cancel") {
		t.Run("told", func(t *testing.T) { t.Parallel(); testCancel(t, p) })
	}
	for name, c := range map[string]struct {
		cause error
		want  jobhost.OutcomeKind
	}{
		"cancelled": {hostcall.ErrCancelled, jobhost.OutcomeCancelled},
		"returned":  {hostcall.ErrReturned, jobhost.OutcomeReturned},
		"unknown":   {errors.New("something else"), jobhost.OutcomeReturned},
		"timeout":   {context.DeadlineExceeded, jobhost.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); testContext(t, s, p, c.cause, c.want) })
	}
}

// Best tries something until it takes no longer than [MaxLateness], and returns
// the shortest time: a busy machine alone can cause delays, sometimes of seconds.
func Best(try func() time.Duration) time.Duration {
	const tries, patience = 20, 30 * time.Second
	best, began := try(), time.Now()
	for n := 1; best > MaxLateness && (n < tries || time.Since(began) < patience); n++ {
		best = min(best, try())
	}
	return best
}

// neverBegan is the lateness of a guest that was not run at all.
const neverBegan = time.Hour

// Lateness runs a guest that doesn't end until it is stopped, and returns how
// long after its deadline that happened, at [Best].
func Lateness(t *testing.T, p runtime.Plugin, stuck func() *hostcall.Attempt) time.Duration {
	t.Helper()
	return Best(func() time.Duration {
		i := Instance(t, p)
		at := stuck()
		at.Deadline = time.Now().Add(50 * time.Millisecond)
		got := i.Run(t.Context(), at)
		late := time.Since(at.Deadline)
		f := got.Outcome.Failure
		if f == nil || f.Code != jobhost.FailTimeout || f.Category != jobhost.CategoryTimeout || !f.Retryable {
			t.Fatalf("%+v, replaced for %q", f, got.Replace)
		}
		if got.Replace != runtime.ReplacedStopped { // its time was over before it began, in a busy process
			return neverBegan
		}
		return late
	})
}

func testDeadline(t *testing.T, s Subject, p runtime.Plugin) {
	for _, stuck := range []string{"spin", "sleep"} {
		if !s.can(stuck) {
			continue
		}
		if late := Lateness(t, p, func() *hostcall.Attempt { return s.Call(stuck, "") }); late > MaxLateness {
			t.Errorf("%s was stopped %v late", stuck, late)
		}
	}
}

// testCancel cancels a guest that checks.
func testCancel(t *testing.T, p runtime.Plugin) {
	s := &Services{}
	at, _ := attemptWith(s, "wait_cancel", "")
	told := make(chan struct{})
	s.Emitted = func(string) {
		time.AfterFunc(0, func() { at.Cancel(); close(told) })
	}
	got := Instance(t, p).Run(t.Context(), at)
	<-told
	if got.Outcome.Kind != jobhost.OutcomeSucceeded || string(got.Outcome.Output) != "stopped" || got.Replace != "" {
		t.Errorf("%+v", got)
	}
}

// testContext stops a guest that doesn't check, and checks that the next run is stopped too.
func testContext(t *testing.T, s Subject, p runtime.Plugin, cause error, want jobhost.OutcomeKind) {
	ctx, cancel := context.WithCancelCause(t.Context())
	at := s.Call("spin", "")
	at.Deadline = time.Time{}
	i := Instance(t, p)
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	got := i.Run(ctx, at)
	if got.Outcome.Kind != want || got.Replace != runtime.ReplacedStopped {
		t.Errorf("%+v, want %v", got, want)
	}
	got = Instance(t, p).Run(ctx, s.Call("", ""))
	if got.Outcome.Kind != want || got.Replace != "" {
		t.Errorf("after the end of its context: %+v, want %v", got, want)
	}
}
