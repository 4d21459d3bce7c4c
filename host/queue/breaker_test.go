package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
)

// breakerBench is a queue with two workers, "w" and "x", that may share a breaker.
type breakerBench struct {
	*testing.T
	store *queuetest.Memory
	cfg   queue.Config
	q     *queue.Queue
	taken chan heldLease
	over  chan struct{} // closed with the test
}

// heldLease is what a slot has, until settled is closed.
type heldLease struct {
	*queue.Lease
	settled chan struct{}
}

func newBreakerBench(t *testing.T, policy jobhost.BreakerPolicy) *breakerBench {
	b := &breakerBench{T: t, store: queuetest.NewMemory(), taken: make(chan heldLease, 100), over: make(chan struct{})}
	for _, name := range []string{"w", "x"} {
		b.cfg.Workers = append(b.cfg.Workers, queue.Worker{
			Name: name, Capacity: 100, Timeout: time.Minute, Breaker: policy,
			Retry: jobhost.RetryPolicy{MaxAttempts: 100, Backoff: jobhost.BackoffConstant, Initial: time.Millisecond, Max: time.Millisecond},
		})
	}
	b.open()
	t.Cleanup(func() {
		close(b.over)
		b.close()
		_ = b.store.Close()
	})
	return b
}

func (b *breakerBench) open() {
	b.Helper()
	q, err := queue.New(context.Background(), b.store, b.cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.q = q
	for _, name := range []string{"w", "w", "w", "w", "x"} {
		slot := q.Slot(name)
		go func() {
			for {
				lease, err := slot.Take(context.Background())
				if err != nil {
					return
				}
				held := heldLease{lease, make(chan struct{})}
				b.taken <- held
				select {
				case <-held.settled:
				case <-b.over:
					return
				}
			}
		}()
	}
}

func (b *breakerBench) close() {
	if err := b.q.Close(context.Background()); err != nil {
		b.Error(err)
	}
}

func (b *breakerBench) submit(worker string, n int) {
	b.Helper()
	for range n {
		if _, err := b.q.Submit(context.Background(), jobhost.Spec{Worker: worker}); err != nil {
			b.Fatal(err)
		}
	}
}

// end settles the next n tasks that were taken.
func (b *breakerBench) end(n int, outcome func() jobhost.Outcome) {
	for range n {
		held := <-b.taken
		b.q.Settle(held.Lease, queue.Report{Outcome: outcome()})
		synctest.Wait()
		close(held.settled)
		synctest.Wait()
	}
}

func (b *breakerBench) want(state jobhost.BreakerState, taken int) {
	b.Helper()
	synctest.Wait()
	if got := b.q.Breaker("w"); got.State != state || len(b.taken) != taken {
		b.Fatalf("the breaker is %+v and %d tasks were taken, want %s and %d", got, len(b.taken), state, taken)
	}
}

func bad() jobhost.Outcome {
	o := failed(true)
	o.Failure.Category = jobhost.CategoryNetwork
	return o
}

func good() jobhost.Outcome { return succeeded("") }

var shared = jobhost.BreakerPolicy{Key: "k", Failures: 3, Timeout: time.Minute, Probes: 2, WhenOpen: jobhost.HoldWhenOpen}

// The life of a breaker that two workers share.
func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerBench(t, shared)
		b.submit("w", 20)
		b.submit("x", 10)
		b.want(jobhost.BreakerClosed, 5)
		b.end(2, bad)
		b.end(1, good)
		b.end(2, bad)
		b.want(jobhost.BreakerClosed, 5) // 2 in a row, after a success
		b.end(1, bad)
		b.want(jobhost.BreakerOpen, 4)
		b.end(4, bad) // they began before
		b.want(jobhost.BreakerOpen, 0)
		for _, worker := range []string{"w", "x"} {
			if n := b.q.Stats(worker).Counts(); n[jobhost.Held] == 0 || n[jobhost.Ready] != 0 {
				t.Errorf("the numbers of %s are %v, want all held", worker, n)
			}
		}
		time.Sleep(time.Minute - time.Second)
		b.want(jobhost.BreakerOpen, 0)
		time.Sleep(time.Second)
		b.want(jobhost.BreakerHalfOpen, 2) // no more probes at once
		b.end(1, func() jobhost.Outcome { return jobhost.Outcome{Kind: jobhost.OutcomeReturned} })
		b.want(jobhost.BreakerHalfOpen, 2) // one that says nothing makes room for another
		b.end(1, good)
		b.want(jobhost.BreakerHalfOpen, 2)
		b.end(1, bad)
		b.want(jobhost.BreakerOpen, 1)
		b.end(1, good) // a probe of a time that is over
		b.want(jobhost.BreakerOpen, 0)
		time.Sleep(time.Minute)
		b.end(2, good)
		b.want(jobhost.BreakerClosed, 5)
	})
}

// A breaker is as open after a restart as before, and as closed after a reset.
func TestBreakerSurvivesARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerBench(t, shared)
		b.submit("w", 3)
		b.end(3, bad)
		b.want(jobhost.BreakerOpen, 0)
		time.Sleep(20 * time.Second)
		b.close()
		b.open()
		b.want(jobhost.BreakerOpen, 0)
		if until := time.Until(*b.q.Breaker("x").Until).Round(time.Millisecond); until != 40*time.Second {
			t.Errorf("it is open for %v more, want 40 s", until)
		}
		time.Sleep(40 * time.Second)
		b.want(jobhost.BreakerHalfOpen, 2)
		b.end(2, bad)
		time.Sleep(time.Second)
		b.want(jobhost.BreakerOpen, 0)
		if err := b.q.ResetBreaker(context.Background(), "x"); err != nil {
			t.Fatal(err)
		}
		b.want(jobhost.BreakerClosed, 3)
		b.end(3, good)
		b.close()
		b.open()
		b.want(jobhost.BreakerClosed, 0)
	})
}

// Failures that are about the job say nothing of what the worker depends on.
func TestBreakerIgnoresBadInput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerBench(t, shared)
		b.submit("w", 20)
		for _, category := range []jobhost.Category{jobhost.CategoryValidation, jobhost.CategoryBusiness} {
			b.end(5, func() jobhost.Outcome {
				o := failed(false)
				o.Failure.Category = category
				return o
			})
			b.want(jobhost.BreakerClosed, 4)
		}
		b.end(10, good)
		b.want(jobhost.BreakerClosed, 0)
	})
}

// While a breaker that says to fail is open, tasks fail without being run.
func TestBreakerFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := shared
		policy.WhenOpen = jobhost.FailWhenOpen
		b := newBreakerBench(t, policy)
		b.submit("w", 3)
		b.end(3, bad)
		b.want(jobhost.BreakerOpen, 0)
		receipt, err := b.q.Submit(context.Background(), jobhost.Spec{Worker: "w", MaxAttempts: 2})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		b.want(jobhost.BreakerOpen, 0)
		job, err := b.q.Job(context.Background(), receipt.ID)
		if err != nil || job.State != jobhost.Dead || len(job.Failures) != 2 || job.Failures[0].Code != jobhost.FailBreaker {
			t.Errorf("got %+v, %v", job, err)
		}
	})
}

// A lane that may try a breaker but finds no room on the host waits for that room,
// and does nothing meanwhile.
func TestHalfOpenBreakerAtAFullGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(c *queue.Config) {
			c.MaxRunning = 1
			c.Workers[0].Breaker = oneFailure
			c.Workers = append(c.Workers, queue.Worker{Name: "x", Capacity: 10, Timeout: time.Minute})
		})
		for _, worker := range []string{"w", "x"} {
			f.submit(jobhost.Spec{Worker: worker})
		}
		f.settle(f.take(f.Slot("w")), bad())
		other := f.take(f.Slot("x"))
		probe := make(chan *queue.Lease)
		go func() {
			lease, _ := f.Slot("w").Take(context.Background())
			probe <- lease
		}()
		time.Sleep(2 * oneFailure.Timeout)
		f.settle(other, good())
		f.settle(<-probe, good())
		if got := f.Breaker("w"); got.State != jobhost.BreakerClosed {
			t.Errorf("the breaker is %+v", got)
		}
	})
}
