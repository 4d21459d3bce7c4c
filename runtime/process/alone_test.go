package process_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	jobruntime "github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// briefly runs attempts that end soon, so that the next lone one is expected to.
func briefly(t *testing.T, i jobruntime.Instance) {
	t.Helper()
	for range 20 {
		wantKind(t, i, runtimetest.Attempt("echo", "x"), jobhost.OutcomeSucceeded)
	}
}

func wantKind(t *testing.T, i jobruntime.Instance, at *hostcall.Attempt, want jobhost.OutcomeKind) {
	t.Helper()
	if got := i.Run(context.Background(), at).Outcome; got.Kind != want {
		t.Errorf("%s: %v instead of %v: %v", at.Entry, got.Kind, want, got.Failure)
	}
}

// TestAloneIsNotAlone has lone attempts that are expected to be brief take long: others run beside them, they are
// notified of cancels, deadlines and ends, and are answered.
func TestAloneIsNotAlone(t *testing.T) {
	t.Parallel()
	p := sandboxOf(t, guests.Outcomes, 1)
	i, other := instantiate(t, p), instantiate(t, p)
	briefly(t, i)
	briefly(t, other)
	for range 5 {
		spins := runtimetest.Attempt("spin", "")
		spins.Deadline = time.Now().Add(500 * time.Millisecond)
		ended := make(chan struct{})
		go func() {
			wantKind(t, i, spins, jobhost.OutcomeFailed)
			close(ended)
		}()
		for range 5 {
			wantKind(t, other, runtimetest.Attempt("echo", "x"), jobhost.OutcomeSucceeded)
		}
		select {
		case <-ended:
			t.Error("an attempt waited for the end of another")
		default:
		}
		<-ended
		briefly(t, i)

		cancelled := runtimetest.Attempt("wait_cancel", "")
		go func() {
			runtime.Gosched()
			cancelled.Cancel()
		}()
		if got := i.Run(context.Background(), cancelled).Outcome; got.Kind == 0 || got.Failure != nil && got.Failure.Code == jobhost.FailTimeout {
			t.Errorf("cancelled: %+v", got)
		}
		briefly(t, i)

		ctx, stop := context.WithCancel(context.Background())
		go stop()
		if got := i.Run(ctx, runtimetest.Attempt("spin", "")).Outcome; got.Kind != jobhost.OutcomeReturned {
			t.Errorf("its context has ended: %+v", got)
		}
		briefly(t, i)
		wantKind(t, i, runtimetest.Attempt("info", "job.id"), jobhost.OutcomeSucceeded)
	}
}

// TestHammerAlone has attempts with pauses between them, so that some are alone and some are not; of both,
// some take long, make calls, or are cancelled.
func TestHammerAlone(t *testing.T) {
	t.Parallel()
	p := sandboxOf(t, guests.Outcomes, 2)
	var all sync.WaitGroup
	for range 4 {
		i := instantiate(t, p)
		all.Go(func() {
			for range 150 {
				switch rand.IntN(8) {
				case 0:
					at := runtimetest.Attempt("spin", "")
					at.Deadline = time.Now().Add(5 * time.Millisecond)
					wantKind(t, i, at, jobhost.OutcomeFailed)
				case 1:
					at := runtimetest.Attempt("wait_cancel", "")
					go at.Cancel()
					if got := i.Run(context.Background(), at).Outcome; got.Failure != nil && got.Failure.Code == jobhost.FailTimeout {
						t.Errorf("cancelled: %+v", got)
					}
				case 2:
					wantKind(t, i, runtimetest.Attempt("info", "job.id"), jobhost.OutcomeSucceeded)
				case 3:
					wantKind(t, i, runtimetest.Attempt("trap", ""), jobhost.OutcomeFailed)
				default:
					wantKind(t, i, runtimetest.Attempt("echo", "x"), jobhost.OutcomeSucceeded)
				}
				for range rand.IntN(200) {
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
}

func instantiate(t *testing.T, p jobruntime.Plugin) jobruntime.Instance {
	t.Helper()
	i, err := p.Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return i
}
