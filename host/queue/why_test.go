package queue_test

import (
	"cmp"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
)

// Every job that waits has one reason, and something that would end it.
func TestWhyOfEverythingThatWaits(t *testing.T) {
	t.Parallel()
	bg := context.Background()
	run := func(t *testing.T, q *queue.Queue) *queue.Lease {
		go func() { // another slot, that waits as long as the queue is open
			if lease, err := q.Slot("w").Take(bg); err == nil {
				q.Settle(lease, queue.Report{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeReturned}})
			}
		}()
		return take(t, q.Slot("w"))
	}
	tests := []struct {
		code  string
		ask   string // the id; "" = job
		state jobhost.State
		timed bool // it ends by itself at a time that is told
		cfg   queue.Config
		w     queue.Worker
		spec  jobhost.Spec
		do    func(t *testing.T, q *queue.Queue)
	}{
		{code: "scheduled", state: jobhost.Scheduled, timed: true, spec: jobhost.Spec{Delay: time.Hour}},
		{code: "retry", state: jobhost.Retrying, timed: true, do: func(t *testing.T, q *queue.Queue) {
			q.Settle(take(t, q.Slot("w")), queue.Report{Outcome: failed(true)})
		}},
		{code: "running", state: jobhost.Running, do: func(t *testing.T, q *queue.Queue) { take(t, q.Slot("w")) }},
		{code: "no_slot", state: jobhost.Ready},
		{code: "no_worker", state: jobhost.Held, do: func(_ *testing.T, q *queue.Queue) { q.Park("w") }},
		{code: "paused", state: jobhost.Held, do: func(t *testing.T, q *queue.Queue) { setMode(t, q, jobhost.WorkerPaused) }},
		{code: "draining", state: jobhost.Held, do: func(t *testing.T, q *queue.Queue) { setMode(t, q, jobhost.WorkerDraining) }},
		{
			code: "rate_limit", state: jobhost.Held, timed: true, w: queue.Worker{Rate: jobhost.Rate{Count: 1, Per: time.Hour}},
			do: func(t *testing.T, q *queue.Queue) { run(t, q) },
		},
		{
			code: "concurrency", state: jobhost.Held, w: queue.Worker{PerKey: 1}, spec: jobhost.Spec{ConcurrencyKey: "k"},
			do: func(t *testing.T, q *queue.Queue) { run(t, q) },
		},
		{code: "max_running", state: jobhost.Ready, cfg: queue.Config{MaxRunning: 1}, do: func(t *testing.T, q *queue.Queue) { run(t, q) }},
		{
			code: "max_memory", state: jobhost.Ready, cfg: queue.Config{MaxMemory: 10}, w: queue.Worker{Memory: 10},
			do: func(t *testing.T, q *queue.Queue) { run(t, q) },
		},
		{
			code: "breaker_open", state: jobhost.Held, timed: true, w: queue.Worker{Breaker: oneFailure},
			do: func(t *testing.T, q *queue.Queue) {
				q.Settle(take(t, q.Slot("w")), queue.Report{Outcome: bad()})
			},
		},
		{
			code: "breaker_half_open", ask: "first", state: jobhost.Held, w: queue.Worker{Breaker: oneFailure},
			do: func(t *testing.T, q *queue.Queue) {
				q.Settle(take(t, q.Slot("w")), queue.Report{Outcome: bad()})
				time.Sleep(oneFailure.Timeout)
				run(t, q)
			},
		},
		{code: "stopping", state: jobhost.Ready, do: func(_ *testing.T, q *queue.Queue) { q.Stop() }},
	}
	for _, test := range tests {
		t.Run(test.code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				test.w.Name, test.w.Capacity, test.w.Timeout, test.w.Retry = "w", 10, time.Hour, jobhost.DefaultRetry()
				test.cfg.Workers = []queue.Worker{test.w}
				store := queuetest.NewMemory()
				q, err := queue.New(bg, store, test.cfg)
				if err != nil {
					t.Fatal(err)
				}
				if test.state == jobhost.Held || test.cfg.MaxRunning+int(test.cfg.MaxMemory) > 0 {
					put(t, q, jobhost.Spec{ID: "first", ConcurrencyKey: test.spec.ConcurrencyKey})
				}
				test.spec.ID = "job"
				put(t, q, test.spec)
				if test.do != nil {
					test.do(t, q)
				}
				synctest.Wait()
				why, err := q.Why(bg, cmp.Or(test.ask, "job"))
				if err != nil || why.State != test.state || why.Code != test.code || why.Reason == "" {
					t.Errorf("got %+v, %v", why, err)
				}
				if (why.Until != nil) != test.timed || why.Until == nil && why.Ends == "" {
					t.Errorf("nothing says when it ends: %+v", why)
				}
				if why.Until != nil && !why.Until.After(time.Now()) {
					t.Errorf("it ends in the past: %v", why.Until)
				}
				if err := q.Close(bg); err != nil {
					t.Error(err)
				}
				_ = store.Close()
				synctest.Wait()
			})
		})
	}
}

// oneFailure is a breaker that opens at once.
var oneFailure = jobhost.BreakerPolicy{Key: "k", Failures: 1, Timeout: time.Minute, Probes: 1, WhenOpen: jobhost.HoldWhenOpen}

func setMode(t *testing.T, q *queue.Queue, mode jobhost.WorkerMode) {
	t.Helper()
	if err := q.SetMode(context.Background(), "w", mode); err != nil {
		t.Fatal(err)
	}
}
