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

// MaxLateness is how long after its deadline a guest may run at most.
const MaxLateness = 100 * time.Millisecond

func testStop(t *testing.T, open Open) {
	p := open(t, runtime.Limits{})
	t.Run("deadline", func(t *testing.T) { t.Parallel(); testDeadline(t, p) })
	t.Run("deadline before the run", func(t *testing.T) {
		t.Parallel()
		at := Attempt("", "")
		at.Deadline = time.Now().Add(-time.Second)
		got := Instance(t, p).Run(t.Context(), at)
		if f := got.Outcome.Failure; f == nil || f.Code != jobhost.FailTimeout || got.Broken {
			t.Errorf("%+v, broken %t", f, got.Broken)
		}
	})
	t.Run("told", func(t *testing.T) { t.Parallel(); testCancel(t, p) })
	for name, c := range map[string]struct {
		cause error
		want  jobhost.OutcomeKind
	}{
		"cancelled": {hostcall.ErrCancelled, jobhost.OutcomeCancelled},
		"returned":  {hostcall.ErrReturned, jobhost.OutcomeReturned},
		"unknown":   {errors.New("something else"), jobhost.OutcomeReturned},
		"timeout":   {context.DeadlineExceeded, jobhost.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); testContext(t, p, c.cause, c.want) })
	}
}

// Lateness runs a guest that doesn't end until it is stopped, and returns how
// long after its deadline that was. It returns the best of some tries unless
// one is in time, since a busy machine is late by itself.
func Lateness(t *testing.T, p runtime.Plugin, entry string) time.Duration {
	t.Helper()
	late := time.Hour
	for try := 0; try < 20 && late > MaxLateness; try++ {
		i := Instance(t, p)
		at := Attempt(entry, "")
		at.Deadline = time.Now().Add(50 * time.Millisecond)
		got := i.Run(t.Context(), at)
		late = min(late, time.Since(at.Deadline))
		if f := got.Outcome.Failure; f == nil || f.Code != jobhost.FailTimeout || f.Category != jobhost.CategoryTimeout || !f.Retryable || !got.Broken {
			t.Fatalf("%s: %+v, broken %t", entry, f, got.Broken)
		}
	}
	return late
}

func testDeadline(t *testing.T, p runtime.Plugin) {
	if late := Lateness(t, p, "spin"); late > MaxLateness {
		t.Errorf("the guest was stopped %v late", late)
	}
}

// testCancel tells a guest that asks.
func testCancel(t *testing.T, p runtime.Plugin) {
	s := &Services{}
	at, _ := attemptWith(s, "wait_cancel", "")
	told := make(chan struct{})
	s.Emitted = func(string) {
		time.AfterFunc(0, func() { at.Cancel(); close(told) })
	}
	got := Instance(t, p).Run(t.Context(), at)
	<-told
	if got.Outcome.Kind != jobhost.OutcomeSucceeded || string(got.Outcome.Output) != "stopped" || got.Broken {
		t.Errorf("%+v", got)
	}
}

// testContext stops a guest that doesn't ask, and finds the next run stopped too.
func testContext(t *testing.T, p runtime.Plugin, cause error, want jobhost.OutcomeKind) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &Services{Emitted: func(string) { cancel(cause) }}
	at, _ := attemptWith(s, "wait_cancel", "")
	at.Deadline = time.Time{}
	got := Instance(t, p).Run(ctx, at)
	if got.Outcome.Kind != want || !got.Broken {
		t.Errorf("%+v, want %v", got, want)
	}
	got = Instance(t, p).Run(ctx, Attempt("", ""))
	if got.Outcome.Kind != want || got.Broken {
		t.Errorf("after the end of its context: %+v, want %v", got, want)
	}
}
