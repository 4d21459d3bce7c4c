package queue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
)

// jobBench is a queue whose worker "w" has eight slots, which keep what they take
// until it is ended.
type jobBench struct {
	*fixture
	change []func(*queue.Config)
	taken  <-chan *queue.Lease
	held   map[string][]*queue.Lease // by job
}

func newJobBench(t *testing.T, change ...func(*queue.Config)) *jobBench {
	quick := func(c *queue.Config) {
		c.Workers[0].Retry = jobhost.RetryPolicy{Backoff: jobhost.BackoffConstant, Initial: time.Millisecond, Max: time.Millisecond}
	}
	b := &jobBench{change: append([]func(*queue.Config){quick}, change...), held: map[string][]*queue.Lease{}}
	b.fixture = setup(t, b.change...)
	return b
}

// run begins to take tasks.
func (b *jobBench) run() { b.taken = b.runners(8) }

func (b *jobBench) restart() {
	b.t.Helper()
	b.fixture = b.fixture.restart(b.change...)
	b.held = map[string][]*queue.Lease{}
}

// look notes which tasks were taken.
func (b *jobBench) look() {
	synctest.Wait()
	for len(b.taken) > 0 {
		lease := <-b.taken
		b.held[lease.Job.ID] = append(b.held[lease.Job.ID], lease)
	}
}

// want fails the test unless so many tasks of a job run.
func (b *jobBench) want(id string, n int) {
	b.t.Helper()
	b.look()
	if got := len(b.held[id]); got != n {
		b.t.Fatalf("%d tasks of %s run, want %d; the numbers are %v", got, id, n, b.Stats("w").Counts())
	}
}

// end ends n tasks of a job that run.
func (b *jobBench) end(id string, n int, outcome func() jobhost.Outcome) {
	b.t.Helper()
	for range n {
		b.look()
		if len(b.held[id]) == 0 {
			b.t.Fatalf("no task of %s runs", id)
		}
		lease := b.held[id][0]
		b.held[id] = b.held[id][1:]
		b.settle(lease, outcome())
	}
}

func (b *jobBench) wantWhy(id string, state jobhost.State, code string) {
	b.t.Helper()
	why, err := b.Why(context.Background(), id)
	if err != nil || why.State != state || why.Code != code || why.Reason == "" || why.Until == nil && why.Ends == "" {
		b.t.Fatalf("why of %s: %+v, %v; want %s", id, why, err, code)
	}
}

func withBreaker(policy jobhost.BreakerPolicy) func(*record.JobSpec) {
	return func(j *record.JobSpec) { j.Breaker, j.MaxAttempts = &policy, 100 }
}

// The life of a breaker that a job has: others of its worker don't notice it.
func TestJobBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t)
		b.add(stepJob("s", 6, withBreaker(shared)))
		b.run()
		b.want("s", 6)
		b.end("s", 2, bad)
		b.end("s", 1, good)
		time.Sleep(time.Second)
		b.want("s", 5)
		b.end("s", 3, bad)
		b.want("s", 2) // they began before
		b.wantWhy("s", jobhost.Running, "running")
		b.end("s", 2, bad)
		time.Sleep(time.Second)
		b.want("s", 0)
		b.wantWhy("s", jobhost.Held, "breaker_open")
		if n := b.Stats("w").Counts(); n[jobhost.Held] != 5 || n[jobhost.Ready]+n[jobhost.Retrying] != 0 {
			t.Errorf("the numbers are %v, want 5 held", n)
		}
		if page, err := b.Jobs(t.Context(), jobhost.Filter{State: jobhost.Held}); err != nil || len(page.Jobs) != 1 || page.Jobs[0].ID != "s" {
			t.Errorf("held are %+v, %v", page.Jobs, err)
		}
		if waits := b.Stats("w").OldestReady; waits < 900*time.Millisecond {
			t.Errorf("the oldest has waited for %v", waits)
		}
		b.add(stepJob("same", 2, withBreaker(shared)))
		for i := range 20 {
			b.submit(jobhost.Spec{ID: fmt.Sprint("other", i)})
			b.end(fmt.Sprint("other", i), 1, good)
		}
		b.want("same", 0)
		time.Sleep(time.Minute - 2*time.Second)
		b.want("s", 0)
		time.Sleep(time.Second)
		b.want("s", 2) // no more probes at once
		b.wantWhy("same", jobhost.Held, "breaker_half_open")
		b.end("s", 1, func() jobhost.Outcome { return jobhost.Outcome{Kind: jobhost.OutcomeReturned} })
		b.want("s", 2) // one that says nothing makes room for another
		b.end("s", 1, good)
		b.want("s", 2)
		b.end("s", 1, bad)
		b.want("s", 1)
		b.end("s", 1, good) // a probe of a time that is over
		b.want("s", 0)
		time.Sleep(time.Minute)
		b.end("s", 2, good)
		b.end("same", 2, good)
		b.end("s", 1, good)
		if job := b.job("s"); job.State != jobhost.Succeeded || b.job("same").Tasks[1].Attempt != 1 {
			t.Errorf("got %+v", job)
		}
		if known, noted := b.Breakers(); known+noted+b.Remains("w") != 0 {
			t.Errorf("%d breakers are known, and of %d where they stand; the lane has %d", known, noted, b.Remains("w"))
		}
	})
}

// After a restart the lane finds out with its first task; that costs no attempt,
// nor does the task's worker lose a place in its rate.
func TestJobBreakerSurvivesARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t, func(c *queue.Config) {
			c.Workers[0].Rate, c.Workers[0].RateBurst = jobhost.Rate{Count: 1, Per: time.Second}, 3
		})
		b.add(stepJob("s", 3, withBreaker(shared)))
		b.run()
		b.end("s", 3, bad)
		time.Sleep(20 * time.Second)
		b.restart()
		b.add(stepJob("few", 9, withBreaker(shared), func(j *record.JobSpec) { j.MaxParallel = 4 }))
		b.submit(jobhost.Spec{ID: "other", Priority: jobhost.Background})
		b.submit(jobhost.Spec{ID: "another", Priority: jobhost.Background})
		b.run()
		b.want("s", 0)
		b.want("few", 0)
		b.want("other", 1)
		b.want("another", 1)
		b.wantWhy("s", jobhost.Held, "breaker_open")
		b.wantWhy("few", jobhost.Held, "breaker_open")
		if _, err := b.CancelTask(t.Context(), "few", 0); err != nil {
			t.Fatal(err)
		}
		for _, kind := range append(b.kinds("s"), b.kinds("few")...) {
			if kind == jobhost.EventStarted {
				t.Error("a task that was held is told to have started")
			}
		}
		why, err := b.Why(t.Context(), "s")
		if err != nil || time.Until(*why.Until).Round(time.Millisecond) != 40*time.Second {
			t.Errorf("it is open until %v, want 40 s (%v)", why.Until, err)
		}
		time.Sleep(40 * time.Second)
		b.look()
		probes := map[string]int{"s": len(b.held["s"]), "few": len(b.held["few"])}
		if probes["s"]+probes["few"] != 2 {
			t.Fatalf("%v run", probes)
		}
		for id, n := range probes {
			b.end(id, n, good)
		}
		time.Sleep(time.Minute)
		b.want("s", 3-probes["s"])
		b.want("few", 4)
		b.wantWhy("few", jobhost.Running, "running")
		b.restart()
		b.run()
		time.Sleep(time.Minute)
		b.want("s", 3-probes["s"]) // it is closed
		b.want("few", 4)
	})
}

// While a breaker that says to fail is open, tasks fail without being run, and the
// worker's own breaker doesn't count that.
func TestJobBreakerFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := shared
		policy.WhenOpen = jobhost.FailWhenOpen
		b := newJobBench(t, func(c *queue.Config) { c.Workers[0].Breaker = jobhost.DefaultBreaker("w") })
		b.add(stepJob("s", 3, withBreaker(policy)))
		b.run()
		b.end("s", 3, bad)
		for _, restart := range []bool{false, true} {
			if restart {
				b.restart()
				b.run()
			}
			id := fmt.Sprint("restart.", restart)
			b.add(stepJob(id, 5, withBreaker(policy), func(j *record.JobSpec) { j.MaxAttempts = 2 }))
			time.Sleep(time.Second)
			job := b.job(id)
			if job.State != jobhost.Dead || len(job.Failures) != 10 || job.Failures[9].Code != jobhost.FailBreaker {
				t.Fatalf("got %+v", job)
			}
			if own := b.Breaker("w"); own.State != jobhost.BreakerClosed {
				t.Errorf("the worker's own breaker is %+v", own)
			}
		}
	})
}

// An attempt tells both breakers, its worker's and its job's; where they are one,
// once.
func TestJobAndWorkerHaveBreakers(t *testing.T) {
	t.Parallel()
	own := jobhost.BreakerPolicy{Key: "own", Failures: 5, Timeout: time.Hour, Probes: 1, WhenOpen: jobhost.HoldWhenOpen}
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t, func(c *queue.Config) { c.Workers[0].Breaker = own })
		b.add(stepJob("s", 3, withBreaker(shared)))
		b.run()
		b.end("s", 3, bad)
		time.Sleep(time.Second)
		b.want("s", 0)
		b.wantWhy("s", jobhost.Held, "breaker_open")
		if got := b.Breaker("w"); got.State != jobhost.BreakerClosed || got.Failures != 3 {
			t.Errorf("the worker's breaker is %+v, want 3 failures", got)
		}
		b.add(stepJob("other", 2, func(j *record.JobSpec) { j.MaxAttempts = 1 }))
		b.end("other", 2, bad)
		if got := b.Breaker("w"); got.State != jobhost.BreakerOpen {
			t.Errorf("the worker's breaker is %+v, want open", got)
		}
		time.Sleep(time.Hour)
		b.want("s", 1) // the one probe of the worker's breaker
		b.end("s", 1, good)
		b.want("s", 2)
	})
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t, func(c *queue.Config) { c.Workers[0].Breaker = oneFailure })
		policy := oneFailure
		policy.Failures = 100 // the worker's holds
		b.add(stepJob("s", 2, withBreaker(policy)))
		b.run()
		b.end("s", 2, bad)
		time.Sleep(oneFailure.Timeout + time.Second)
		b.want("s", 1)
		b.end("s", 2, good)
		if got := b.Breaker("w"); got.State != jobhost.BreakerClosed {
			t.Errorf("the worker's breaker is %+v", got)
		}
	})
}

// Workers whose jobs have one breaker hold and probe together.
func TestJobsOfTwoWorkersShareABreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t, func(c *queue.Config) {
			x := c.Workers[0]
			x.Name = "x"
			c.Workers = append(c.Workers, x)
		})
		b.add(stepJob("s", 3, withBreaker(oneFailure)))
		b.add(stepJob("x", 1, withBreaker(oneFailure), func(j *record.JobSpec) { j.Worker = "x" }))
		b.run()
		b.end("s", 3, bad)
		other := make(chan *queue.Lease, 1)
		go func() {
			lease, _ := b.Slot("x").Take(context.Background())
			other <- lease
		}()
		synctest.Wait()
		b.wantWhy("x", jobhost.Held, "breaker_open")
		time.Sleep(oneFailure.Timeout)
		synctest.Wait()
		if n := len(b.taken) + len(other); n != 1 {
			t.Fatalf("%d probes run", n)
		}
		if len(other) == 0 {
			b.end("s", 1, good)
			b.settle(<-other, good())
		} else {
			b.settle(<-other, good())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := b.Stats("w").Counts(); n[jobhost.Held] != 0 {
			t.Errorf("the numbers are %v", n)
		}
	})
}

// Breakers that no job uses are forgotten, but for where open ones stand and a few
// that count failures.
func TestJobBreakersAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newJobBench(t)
		slot := b.Slot("w")
		jobs := 0
		run := func(n int, policy jobhost.BreakerPolicy, outcome func() jobhost.Outcome) {
			for i := range n {
				policy.Key = fmt.Sprint(policy.Failures, ".", i)
				jobs++
				b.add(stepJob(fmt.Sprint(jobs), 1, withBreaker(policy), func(j *record.JobSpec) { j.MaxAttempts = 1 }))
				b.Settle(b.take(slot), queue.Report{Outcome: outcome()})
				synctest.Wait()
			}
		}
		run(20, shared, good)
		if known, noted := b.Breakers(); known+noted != 0 {
			t.Errorf("%d and %d are left after successes", known, noted)
		}
		run(queue.MostBreakers+50, shared, bad)
		if known, noted := b.Breakers(); known > queue.MostBreakers || known == 0 || noted != 0 {
			t.Errorf("%d and %d are left after some failures", known, noted)
		}
		run(20, oneFailure, bad)
		if known, noted := b.Breakers(); known > queue.MostBreakers || noted != 20 {
			t.Errorf("%d and %d are left of open ones", known, noted)
		}
		policy := oneFailure
		policy.Key = "1.7"
		b.add(stepJob("again", 1, withBreaker(policy)))
		began := time.Now()
		b.settle(b.take(slot), good())
		if waited := time.Since(began); waited < 50*time.Second {
			t.Errorf("a task passes an open breaker after %v", waited)
		}
		if _, noted := b.Breakers(); noted != 19 {
			t.Errorf("where %d stand is noted, one of which is closed", noted)
		}
	})
}
