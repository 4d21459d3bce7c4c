package queue_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
)

// crashedAs is what a journal would tell of a lease.
func crashedAs(l *queue.Lease) queue.Crashed {
	return queue.Crashed{Key: l.Key, Token: l.Token, Job: l.Job.ID, Began: l.TakenAt, Failure: jobhost.Failure{
		Code: jobhost.FailHostCrash, Category: jobhost.CategorySystem, Severity: jobhost.SeverityCritical, Message: "it died", Retryable: true,
	}}
}

// crash makes another queue over the store that is told what was under way.
func (f *fixture) crash(crashed ...queue.Crashed) *fixture {
	f.t.Helper()
	f.Stop()
	return reopen(f.t, f.store, func(c *queue.Config) { c.Crashed = crashed })
}

func (f *fixture) settleCrashed(want int) {
	f.t.Helper()
	settled, err := f.SettleCrashed(f.t.Context(), time.Now())
	if err != nil || len(settled) != want {
		f.t.Fatalf("settled %+v, %v, want %d", settled, err, want)
	}
}

func TestCrashedAttemptCountsAndRunsAgainAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{ConcurrencyKey: "k", Deadline: time.Hour})
		lease := f.take(f.Slot("w"))
		began := time.Now().UTC()
		time.Sleep(3 * time.Second)
		again := f.crash(crashedAs(lease))
		if kinds := again.kinds(id); len(kinds) > 0 {
			t.Errorf("before it is settled: %v", kinds)
		}
		again.settleCrashed(1)
		job := again.job(id)
		if job.State != jobhost.Ready || job.Tasks[0].Attempt != 1 || len(job.Failures) != 1 {
			t.Fatalf("%+v", job)
		}
		if x := job.Failures[0]; x.Code != jobhost.FailHostCrash || x.Attempt != 1 || !x.StartedAt.Equal(began) || !x.EndedAt.Equal(began.Add(3*time.Second)) {
			t.Errorf("%+v", x)
		}
		if kinds := again.kinds(id); !slices.Equal(kinds, []jobhost.EventKind{jobhost.EventRetrying}) {
			t.Error(kinds)
		}
		slot := again.Slot("w")
		next := again.take(slot)
		if next.Job.ID != id || next.Number() != 2 || !next.Suspect {
			t.Fatalf("next is %s, attempt %d, suspect %t", next.Job.ID, next.Number(), next.Suspect)
		}
		again.settle(next, failed(true))
		behind := again.submit(jobhost.Spec{})
		if other := again.take(slot); other.Job.ID != behind || other.Suspect {
			t.Errorf("%s, suspect %t", other.Job.ID, other.Suspect)
		}
		time.Sleep(time.Minute)
		third := again.take(slot)
		if third.Number() != 3 || !third.Suspect {
			t.Errorf("attempt %d after a failure of another kind, suspect %t", third.Number(), third.Suspect)
		}
		again.settle(third, failed(true))
		if _, err := again.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if revived := again.take(slot); revived.Job.ID != id || revived.Number() != 1 || !revived.Suspect {
			t.Errorf("revived: attempt %d, suspect %t", revived.Number(), revived.Suspect)
		}
	})
}

func TestCrashedLastAttemptIsADeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{MaxAttempts: 1, Tasks: 3})
		slot := f.Slot("w")
		first, second := f.take(slot), f.take(slot)
		again := f.crash(crashedAs(first), crashedAs(second))
		again.settleCrashed(2)
		letters, err := again.Dead(t.Context(), jobhost.DeadFilter{Code: jobhost.FailHostCrash})
		if err != nil || len(letters.Letters) != 2 {
			t.Fatalf("%+v, %v", letters, err)
		}
		if kinds := again.kinds(id); !slices.Equal(kinds, []jobhost.EventKind{jobhost.EventDead, jobhost.EventDead}) {
			t.Error(kinds)
		}
		last := again.take(again.Slot("w"))
		again.settle(last, succeeded(""))
		if job := again.job(id); job.State != jobhost.Dead || last.Index != 2 || last.Suspect {
			t.Errorf("%+v", job)
		}
	})
}

// The host died again while it settled: what is durable doesn't count twice.
func TestCrashedAttemptCountsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{})
		crashed := crashedAs(f.take(f.Slot("w")))
		f = f.crash(crashed)
		f.settleCrashed(1)
		f.settleCrashed(0)
		f = f.crash(crashed)
		f.settleCrashed(0)
		if job := f.job(id); job.State != jobhost.Ready || job.Tasks[0].Attempt != 1 || len(job.Failures) != 1 {
			t.Errorf("%+v", job)
		}
		if next := f.take(f.Slot("w")); next.Number() != 2 {
			t.Errorf("attempt %d", next.Number())
		}
	})
}

func TestWhatWasUnderWayAndIsNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		slot := f.Slot("w")
		done, cancelled, other := f.submit(jobhost.Spec{}), f.submit(jobhost.Spec{}), f.submit(jobhost.Spec{})
		one, two, three := f.take(slot), f.take(slot), f.take(slot)
		f.settle(one, succeeded("x"))
		if _, err := f.Cancel(t.Context(), cancelled); err != nil {
			t.Fatal(err)
		}
		mistaken, unknown := crashedAs(three), crashedAs(three)
		mistaken.Job = "another"
		unknown.Key += 1000
		f = f.crash(crashedAs(one), crashedAs(two), mistaken, unknown)
		f.settleCrashed(0)
		f.wantState(done, jobhost.Succeeded)
		f.wantState(cancelled, jobhost.Cancelled)
		if next := f.take(f.Slot("w")); next.Job.ID != other || next.Number() != 1 || next.Suspect {
			t.Errorf("%s, attempt %d", next.Job.ID, next.Number())
		}
	})
}

// A worker that is gone from the manifest has its attempts settled too.
func TestCrashedAttemptOfAMissingWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{MaxAttempts: 1})
		crashed := crashedAs(f.take(f.Slot("w")))
		f.Stop()
		f = reopen(t, f.store, func(c *queue.Config) {
			c.Workers, c.Crashed = []queue.Worker{worker("other", 10)}, []queue.Crashed{crashed}
		})
		f.settleCrashed(1)
		f.wantState(id, jobhost.Dead)
	})
}
