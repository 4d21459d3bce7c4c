package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
)

// A deadline that passed while the worker was missing ends the task when its
// lane is filled, before the worker is loaded, and if it never is.
func TestDeadlineOfAWorkerThatIsPreparedOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.submit(jobhost.Spec{ID: "a", Deadline: time.Second})
		f.submit(jobhost.Spec{ID: "b", Deadline: time.Minute})
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		f = reopen(t, f.store, func(c *queue.Config) { c.Workers = []queue.Worker{worker("other", 10)} })
		if err := f.Prepare(t.Context(), worker("w", 10)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.wantState("a", jobhost.Dead)
		time.Sleep(time.Minute)
		synctest.Wait()
		f.wantState("b", jobhost.Dead)
	})
}

// Deadlines hold for jobs of workers that the host doesn't have.
func TestDeadlineOfAMissingWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.submit(jobhost.Spec{ID: "a", Deadline: time.Minute})
		f.submit(jobhost.Spec{ID: "b"})
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		f = reopen(t, f.store, func(c *queue.Config) { c.Workers = []queue.Worker{worker("other", 10)} })
		f.wantState("a", jobhost.Held)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		f.wantState("a", jobhost.Dead)
		f.wantState("b", jobhost.Held)
	})
}

// A worker whose plugin could not be loaded leaves its jobs as they were: held,
// and for anybody to cancel and retry.
func TestRetryOfAWorkerThatIsPreparedOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.submit(jobhost.Spec{ID: "a"})
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		f = reopen(t, f.store, func(c *queue.Config) { c.Workers = []queue.Worker{worker("other", 10)} })
		if err := f.Prepare(t.Context(), worker("w", 10)); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Cancel(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Retry(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		f.wantState("a", jobhost.Held)
	})
}

// A task that was taken out at its deadline, and meanwhile cancelled, retried
// and cancelled again, counts for nothing.
func TestDeadlineMeetsCancelAndRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, store := openTroubled(t)
		put(t, q, jobhost.Spec{ID: "a", Deadline: time.Second})
		store.trouble(troubles["reads take long"])
		time.Sleep(time.Second)
		synctest.Wait()
		for _, change := range []func() error{
			func() error { _, err := q.Cancel(t.Context(), "a"); return err },
			func() error { _, err := q.Retry(t.Context(), "a"); return err },
			func() error { _, err := q.Cancel(t.Context(), "a"); return err },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
		}
		if n := q.Stats("w").Counts(); n.Total() != 0 {
			t.Errorf("the numbers are %v", n)
		}
		hold := store.holdReads
		store.trouble(func(s *troubledStore) { s.holdReads = nil })
		close(hold)
		synctest.Wait()
		wantJob(t, q, "a", jobhost.Cancelled)
		if n := q.Live("w") + q.Remains("w"); n != 0 {
			t.Errorf("the lane still knows of %d things", n)
		}
	})
}

// A task that was cancelled while its deadline could not be made durable stays
// cancelled, and isn't handed out.
func TestCancelMeetsADeadlineInTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, store := openTroubled(t)
		put(t, q, jobhost.Spec{ID: "a", Deadline: time.Second})
		store.trouble(troubles["reads take long"])
		time.Sleep(time.Second)
		synctest.Wait()
		if _, err := q.Cancel(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		hold := store.holdReads
		store.trouble(func(s *troubledStore) { s.holdReads, s.failReads = nil, 1 })
		close(hold)
		synctest.Wait()
		if n := q.Stats("w").Counts(); n.Total() != 0 {
			t.Errorf("the numbers are %v", n)
		}
		if n := q.Live("w") + q.Remains("w"); n != 0 {
			t.Errorf("the lane still knows of %d things", n)
		}
	})
}

// A higher rate holds at once, also for a task that waits for a slow one.
func TestHigherRateHoldsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := queue.Worker{Rate: jobhost.Rate{Count: 1, Per: time.Hour}}
		q := openQueue(t, w)
		put(t, q, jobhost.Spec{}, jobhost.Spec{}, jobhost.Spec{})
		slot := q.Slot("w")
		q.Settle(take(t, slot), queue.Report{Outcome: succeeded("")})
		fast := worker("w", 10)
		fast.Rate = jobhost.Rate{Count: 10, Per: time.Second}
		began := time.Now()
		q.Put(fast)
		q.Settle(take(t, slot), queue.Report{Outcome: succeeded("")})
		if waited := time.Since(began); waited > 100*time.Millisecond {
			t.Errorf("waited %v after the rate was raised to 10/s", waited)
		}
		q.Put(worker("w", 10)) // no rate
		began = time.Now()
		q.Settle(take(t, slot), queue.Report{Outcome: succeeded("")})
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %v without a rate", waited)
		}
	})
}

// A unique key keeps others out for as long as was asked for, however short
// jobs are kept.
func TestUniqueKeyOutlivesRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		removed := map[queue.Removal]int{}
		f := setup(t, kept(jobhost.Retention{Succeeded: time.Minute, Cancelled: time.Minute, Dead: time.Minute}, removed))
		f.tidy()
		slot := f.Slot("w")
		outcomes := map[string]jobhost.Outcome{"good": succeeded(""), "bad": failed(false)}
		for name, outcome := range outcomes {
			f.submit(jobhost.Spec{ID: name, UniqueKey: name, UniqueFor: time.Hour})
			f.settle(f.take(slot), outcome)
		}
		f.submit(jobhost.Spec{ID: "cancelled", UniqueKey: "cancelled", UniqueFor: time.Hour})
		if _, err := f.Cancel(t.Context(), "cancelled"); err != nil {
			t.Fatal(err)
		}
		f.submit(jobhost.Spec{ID: "late", UniqueKey: "late", UniqueFor: time.Hour, Deadline: time.Second})
		time.Sleep(59 * time.Minute)
		for _, name := range []string{"good", "bad", "cancelled", "late"} {
			if id := f.submit(jobhost.Spec{UniqueKey: name, UniqueFor: time.Hour}); id != name {
				t.Errorf("after 59 of 60 minutes another job than %s was made: %s", name, id)
			}
		}
		time.Sleep(10 * time.Minute)
		for _, name := range []string{"good", "bad", "cancelled", "late"} {
			if !f.gone(name) {
				t.Errorf("job %s is kept for longer than its key", name)
			}
		}
	})
}
