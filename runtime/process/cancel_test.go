package process_test

import (
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// TestCancelOfAWait: a guest that has been waiting for a while is notified of a cancel, not only at its deadline.
func TestCancelOfAWait(t *testing.T) {
	t.Parallel()
	i := runtimetest.Instance(t, opener(guests.States)(t, runtime.Source{Entry: "receive"}))
	for range 3 {
		b := &runtimetest.Board{Sent: runtimetest.NewStream("first")}
		at := runtimetest.Attempt("receive", "")
		at.Services = b
		b.Emitted = func(string) { time.AfterFunc(100*time.Millisecond, at.Cancel) }
		if r := i.Run(t.Context(), at); string(r.Outcome.Output) != "-3" {
			t.Errorf("%+v %+v", r.Outcome, r.Outcome.Failure)
		}
	}
}
