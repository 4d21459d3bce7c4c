package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
)

// across runs two lives of a queue on one store, of which the second begins
// when the system's clock shows another time than it should: each bubble of
// synctest has a clock of its own that begins at the same time.
func across(t *testing.T, jump time.Duration, before, after func(f *fixture)) {
	dir := t.TempDir()
	live := func(wait time.Duration, do func(f *fixture)) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(wait)
			store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: dir, Relaxed: true})
			if err != nil {
				t.Fatal(err)
			}
			f := reopen(t, store)
			do(f)
			if err := f.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	const day = 10 * 24 * time.Hour
	live(day, before)
	live(day+jump, after)
}

// A clock that was set back or forward by a day while the host was down keeps
// no task waiting that was due, and changes the order of none.
func TestClockJumpsOverARestart(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{"back": -24 * time.Hour, "forward": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			across(t, jump, func(f *fixture) {
				for _, id := range []string{"first", "second", "third"} {
					f.submit(jobhost.Spec{ID: id})
					time.Sleep(time.Second)
				}
				f.submit(jobhost.Spec{ID: "retried"})
				f.settle(f.take(f.Slot("w")), failed(true)) // first: again after a second
				time.Sleep(2 * time.Second)
				f.submit(jobhost.Spec{ID: "last"})
			}, func(f *fixture) {
				slot, began := f.Slot("w"), time.Now()
				seen := map[string]bool{}
				for range 5 {
					lease := f.take(slot)
					seen[lease.Job.ID] = true
					f.settle(lease, jobhost.Outcome{Kind: jobhost.OutcomeSucceeded})
				}
				if waited := time.Since(began); len(seen) != 5 || waited > time.Second {
					f.t.Errorf("%d tasks within %v", len(seen), waited)
				}
				if n := f.Remains("w"); n != 0 {
					f.t.Errorf("%d times are remembered for tasks that have ended", n)
				}
			})
		})
	}
}

// What was moved because of the clock can be cancelled like anything else.
func TestCancelAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	across(t, -24*time.Hour, func(f *fixture) {
		f.submit(jobhost.Spec{ID: "a"})
		f.submit(jobhost.Spec{ID: "b"})
	}, func(f *fixture) {
		if _, err := f.Cancel(f.t.Context(), "a"); err != nil {
			f.t.Fatal(err)
		}
		if lease := f.take(f.Slot("w")); lease.Job.ID != "b" {
			f.t.Errorf("took %s", lease.Job.ID)
		}
		if n := f.Stats("w").Counts(); n[jobhost.Ready] != 0 {
			f.t.Errorf("%d tasks are ready", n[jobhost.Ready])
		}
	})
}
