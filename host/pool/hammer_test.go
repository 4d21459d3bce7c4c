package pool_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// TestHammerCancelAgainstReuse cancels jobs at any moment of their attempts,
// which a few slots run one after the other in reused structs: a cancel that
// reached another attempt than its own would be seen there.
func TestHammerCancelAgainstReuse(t *testing.T) {
	t.Parallel()
	const jobs = 600
	var (
		cancelled [jobs]atomic.Bool // set before the cancel
		took      = make(chan int, jobs)
		runs      atomic.Int64
	)
	f := setup(t, func(ctx context.Context, _ int, at *hostcall.Attempt) runtime.Result {
		var n int
		_, _ = fmt.Sscan(at.Job[len("job-"):], &n)
		runs.Add(1)
		took <- n
		for range n % 8 {
			goruntime.Gosched()
		}
		stopped := at.Remaining() == hostcall.Stopping || ctx.Err() != nil
		if stopped && !cancelled[n].Load() {
			t.Errorf("%s was not cancelled, but told to stop: %v", at.Job, context.Cause(ctx))
		}
		if ctx.Err() != nil {
			return runtime.Result{Outcome: at.Stopped(ctx)}
		}
		return runtime.Result{Outcome: at.Outcome(nil)}
	}, func(c *settings) { c.version.Size, c.CancelGrace = 4, 50*time.Microsecond })

	// Every third job is cancelled as its attempt begins, or soon after, when
	// the slot may be at the next one.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range took {
				if n%3 == 0 {
					cancelled[n].Store(true)
					_, _ = f.Cancel(context.Background(), jobID(n)) // it may have ended
				}
			}
		})
	}
	for n := range jobs {
		f.submit(jobhost.Spec{ID: jobID(n)})
	}
	f.open.Wait()
	close(took)
	wg.Wait()
	if n := runs.Load(); n != jobs {
		t.Errorf("%d attempts ran for %d jobs", n, jobs)
	}
	for n := range jobs {
		if state := f.job(jobID(n)).State; state != jobhost.Succeeded && !cancelled[n].Load() {
			t.Errorf("%s is %v and was not cancelled", jobID(n), state)
		}
	}
}

func jobID(n int) string { return fmt.Sprintf("job-%d", n) }
