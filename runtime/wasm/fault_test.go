package wasm_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// panicking is a host call that is broken.
type panicking struct{ hostcall.Services }

func TestHostPanic(t *testing.T) {
	t.Parallel()
	i := runtimetest.Instance(t, load(t, newEngine(t), guests.Outcomes, runtime.Limits{}))
	at := runtimetest.Attempt("emit", "x")
	at.Services = panicking{} // whose methods are all nil
	got := i.Run(t.Context(), at)
	f := got.Outcome.Failure
	if f == nil || f.Code != jobhost.FailInternal || got.Replace != runtime.ReplacedInternal || !f.Retryable {
		t.Fatalf("%+v", f)
	}
	if text := f.Message + f.Stack; strings.Contains(text, "/") || strings.Contains(text, "goroutine") || strings.Contains(text, "nil pointer") {
		t.Errorf("the host shows in %q", text)
	}
}

// breaking is services that break after the guest has ended.
type breaking struct {
	runtimetest.Services
	calls int
}

func (s *breaking) Progress(*hostcall.Attempt, int64, int64) {
	if s.calls++; s.calls > 1 { // the second is held back until then
		panic("broken") //nolint:forbidigo // what a fault of the host looks like
	}
}

// TestHostPanicAfterwards: a run that a fault of the host cuts off ends with its
// instance.
func TestHostPanicAfterwards(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	i, err := load(t, e, guests.Outcomes, runtime.Limits{}).Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := runtimetest.Attempt("progress", "10")
	at.Services = &breaking{}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nothing broke")
			}
		}()
		i.Run(t.Context(), at)
	}()
	if err := i.Close(t.Context()); err != nil || e.Running() != 0 {
		t.Errorf("%d runs are under way, %v", e.Running(), err)
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
	if f := inner.Outcome.Failure; f == nil || f.Code != jobhost.FailInternal || inner.Replace != "" {
		t.Errorf("a run within a run: %+v", inner)
	}
}
