package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/queuetest"
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

// term is the life of a queue in a term of a shared store.
type term struct {
	ahead time.Duration // of the host's clock, against the store's
	do    func(f *fixture)
}

// terms runs queues one after the other on one store, of which the clock goes on, whatever those of the hosts show.
func terms(t *testing.T, terms ...term) {
	dir := t.TempDir()
	passed := 10 * 24 * time.Hour
	for _, term := range terms {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(passed + term.ahead)
			store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: dir, Relaxed: true})
			if err != nil {
				t.Fatal(err)
			}
			began, f := time.Now(), reopenAny(t, newShared(store, -term.ahead))
			term.do(f)
			if err := f.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
			passed += time.Since(began)
		})
	}
}

// Nothing is due earlier because the clock of a host that led was ahead.
func TestClockOfAnotherHostIsAhead(t *testing.T) {
	t.Parallel()
	var due time.Time
	terms(t,
		term{0, func(f *fixture) {
			f.submit(jobhost.Spec{ID: "waits", Delay: 5 * time.Minute})
			due = f.Now().Add(5 * time.Minute)
		}},
		term{10 * time.Minute, func(f *fixture) {
			f.submit(jobhost.Spec{ID: "fails"})
			if lease := f.take(f.Slot("w")); lease.Job.ID != "fails" {
				f.t.Errorf("took %s first", lease.Job.ID)
			} else {
				f.settle(lease, jobhost.Outcome{Kind: jobhost.OutcomeSnoozed, Snooze: 4 * time.Minute})
			}
		}},
		term{0, func(f *fixture) {
			slot := f.Slot("w")
			for _, want := range []string{"fails", "waits"} {
				if lease := f.take(slot); lease.Job.ID != want {
					f.t.Errorf("took %s instead of %s", lease.Job.ID, want)
				}
			}
			if early := due.Sub(f.Now()); early > time.Second {
				f.t.Errorf("a delay was over %v too early", early)
			}
		}},
	)
}

// The clock of a shared store may be a little behind what was written, as a heartbeat measures it: then nothing
// changes. One that is far behind was set back.
func TestSharedClockSetBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		back, waits time.Duration // what is due in a minute, by the clock of before
	}{
		{2 * time.Second, time.Minute + 2*time.Second},
		{10 * time.Minute, time.Minute},
	} {
		t.Run(tt.back.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(24 * time.Hour)
				memory := queuetest.NewMemory()
				defer memory.Close()
				f := reopenAny(t, newShared(memory, 0))
				f.submit(jobhost.Spec{Delay: time.Minute})
				if err := f.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				f = reopenAny(t, newShared(memory, -tt.back))
				began := time.Now()
				f.take(f.Slot("w"))
				if waited := time.Since(began); (waited - tt.waits).Abs() > 10*time.Millisecond {
					t.Errorf("it waited %v", waited)
				}
			})
		})
	}
}

// The queue's clock follows that of a shared store, but never goes back, and jumps neither with it nor with the host's.
func TestClockFollowsTheStore(t *testing.T) {
	t.Parallel()
	for _, drift := range []time.Duration{150 * time.Millisecond, -150 * time.Millisecond} {
		t.Run(drift.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store, _ := leading(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _ = f.Tidy(ctx) }()
				store.ahead.Store(int64(drift))
				began := time.Now()
				for before := f.Now(); time.Since(began) < 10*time.Minute; {
					time.Sleep(10 * time.Millisecond)
					now := f.Now()
					if step := now.Sub(before); step < 9*time.Millisecond || step > 11*time.Millisecond {
						t.Fatalf("the clock goes %v in 10 ms", step)
					}
					before = now
				}
				if apart := store.Now().Sub(f.Now()); apart.Abs() > 20*time.Millisecond {
					t.Errorf("the clocks are %v apart", apart)
				}
				was := f.Now().Sub(store.Now())
				store.ahead.Add(int64(time.Hour))
				time.Sleep(10 * time.Minute)
				if apart := store.Now().Add(-time.Hour).Sub(f.Now()) + was; apart.Abs() > time.Second {
					t.Errorf("the clock has followed a jump, and is off by %v", apart)
				}
			})
		})
	}
}
