package wasm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// TestGate proves what gate.go relies on: a run allocates nothing but the
// copy of its output, whatever watches over it. A guest that is stopped
// through its gate is part of the suite.
func TestGate(t *testing.T) {
	e := newEngine(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, tt := range []struct {
		name   string
		module []byte
		input  string
		want   float64
	}{
		{"noop", guests.Noop, "", 0},
		{"echo", guests.Echo, strings.Repeat("x", 64), 1},
	} {
		i := runtimetest.Instance(t, load(t, e, tt.module, runtime.Limits{}))
		at := &hostcall.Attempt{Limits: hostcall.Limits{OutputBytes: 100}}
		allocs := testing.AllocsPerRun(100, func() {
			at.Reset()
			at.Input = []byte(tt.input)
			at.Limits.OutputBytes = 100
			at.Deadline = time.Now().Add(time.Minute)
			if got := i.Run(ctx, at).Outcome; got.Kind != jobhost.OutcomeSucceeded {
				t.Fatalf("%+v", got)
			}
		})
		// One more where the input is made anew.
		if want := tt.want + min(float64(len(tt.input)), 1); allocs > want {
			t.Errorf("%s: %v allocations, want %v", tt.name, allocs, want)
		}
	}
}

// panicking is a host call that is broken.
type panicking struct{ hostcall.Services }

func TestHostPanic(t *testing.T) {
	t.Parallel()
	i := runtimetest.Instance(t, load(t, newEngine(t), guests.Outcomes, runtime.Limits{}))
	at := runtimetest.Attempt("emit", "x")
	at.Services = panicking{} // whose methods are all nil
	got := i.Run(t.Context(), at)
	f := got.Outcome.Failure
	if f == nil || f.Code != jobhost.FailInternal || !got.Broken || !f.Retryable {
		t.Fatalf("%+v", f)
	}
	if text := f.Message + f.Stack; strings.Contains(text, "/") || strings.Contains(text, "goroutine") || strings.Contains(text, "nil pointer") {
		t.Errorf("the host shows in %q", text)
	}
}

// TestNoReentry: an instance that is running refuses a second run.
func TestNoReentry(t *testing.T) {
	t.Parallel()
	i := runtimetest.Instance(t, load(t, newEngine(t), guests.Outcomes, runtime.Limits{}))
	at := runtimetest.Attempt("emit", "x")
	var inner runtime.Result
	at.Services = &runtimetest.Services{Emitted: func(string) {
		inner = i.Run(context.Background(), runtimetest.Attempt("", ""))
	}}
	if got := i.Run(t.Context(), at); got.Outcome.Kind != jobhost.OutcomeSucceeded {
		t.Errorf("%+v", got)
	}
	if f := inner.Outcome.Failure; f == nil || f.Code != jobhost.FailInternal || inner.Broken {
		t.Errorf("a run within a run: %+v", inner)
	}
}
