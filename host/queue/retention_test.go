package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
)

// kept sets the retention of the fixture's worker, and counts what is removed.
func kept(r jobhost.Retention, removed map[queue.Removal]int) func(*queue.Config) {
	return func(cfg *queue.Config) {
		cfg.Workers[0].Retention = r
		cfg.Removed = func(reason queue.Removal, n int) { removed[reason] += n }
	}
}

// tidy runs the tidying of a queue until the test ends.
func (f *fixture) tidy() {
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Tidy(ctx) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	})
}

func (f *fixture) gone(id string) bool {
	f.t.Helper()
	_, err := f.Job(f.t.Context(), id)
	if err != nil && jobhost.CodeOf(err) != jobhost.CodeNotFound {
		f.t.Fatal(err)
	}
	return err != nil
}

func TestJobsAreRemovedWhenTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		removed := map[queue.Removal]int{}
		f := setup(t, kept(jobhost.Retention{Succeeded: time.Hour, Cancelled: 2 * time.Hour, Dead: 3 * time.Hour}, removed))
		f.tidy()
		slot := f.Slot("w")
		succeeded, dead := f.submit(jobhost.Spec{ID: "succeeded"}), f.submit(jobhost.Spec{ID: "dead"})
		f.settle(f.take(slot), jobhost.Outcome{Kind: jobhost.OutcomeSucceeded})
		f.settle(f.take(slot), failed(false))
		own := f.submit(jobhost.Spec{ID: "own", Retention: 10 * time.Minute})
		f.settle(f.take(slot), jobhost.Outcome{Kind: jobhost.OutcomeSucceeded})
		cancelled := f.submit(jobhost.Spec{ID: "cancelled", Delay: time.Hour})
		if _, err := f.Cancel(t.Context(), cancelled); err != nil {
			t.Fatal(err)
		}
		open := f.submit(jobhost.Spec{ID: "open", Delay: 1000 * time.Hour})
		began := time.Now()
		for _, step := range []struct {
			id    string
			after time.Duration
		}{{own, 10 * time.Minute}, {succeeded, time.Hour}, {cancelled, 2 * time.Hour}, {dead, 3 * time.Hour}} {
			time.Sleep(time.Until(began.Add(step.after - time.Second)))
			if f.gone(step.id) {
				t.Errorf("%s is gone before its time", step.id)
			}
			time.Sleep(2*time.Minute + step.after/50)
			if !f.gone(step.id) {
				t.Errorf("%s is still there, long after its time", step.id)
			}
		}
		time.Sleep(2 * time.Hour)
		if f.gone(open) || removed[queue.Expired] != 4 {
			t.Errorf("the open job is gone: %v; %d tasks were removed", f.gone(open), removed[queue.Expired])
		}
	})
}

func TestNothingIsRemovedThatIsKeptForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.tidy()
		id := f.submit(jobhost.Spec{})
		f.settle(f.take(f.Slot("w")), jobhost.Outcome{Kind: jobhost.OutcomeSucceeded})
		time.Sleep(3 * 24 * time.Hour)
		if f.gone(id) {
			t.Error("the job is gone")
		}
	})
}

func TestOldDeadLettersMakeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		removed := map[queue.Removal]int{}
		f := setup(t, kept(jobhost.Retention{MaxEntries: 2}, removed))
		slot := f.Slot("w")
		for _, id := range []string{"a", "b", "c", "d"} {
			f.submit(jobhost.Spec{ID: id})
			f.settle(f.take(slot), failed(false))
		}
		if !f.gone("a") || !f.gone("b") || f.gone("c") || f.gone("d") || removed[queue.Evicted] != 2 {
			t.Errorf("gone: a %v, b %v, c %v, d %v; %d evicted", f.gone("a"), f.gone("b"), f.gone("c"), f.gone("d"), removed[queue.Evicted])
		}
	})
}

// A store that doesn't work for a while costs time, not the tidying.
func TestTidyingGoesOnAfterTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		removed := map[queue.Removal]int{}
		f := setup(t, kept(jobhost.Retention{Succeeded: time.Minute}, removed))
		trouble := &untidyStore{Store: f.store, failures: 3}
		f = reopenAny(t, trouble, kept(jobhost.Retention{Succeeded: time.Minute}, removed))
		id := f.submit(jobhost.Spec{})
		f.settle(f.take(f.Slot("w")), jobhost.Outcome{Kind: jobhost.OutcomeSucceeded})
		time.Sleep(2 * time.Minute)
		f.tidy()
		time.Sleep(time.Minute)
		if !f.gone(id) || trouble.failures != 0 {
			t.Errorf("the job is gone: %v, failures left: %d", f.gone(id), trouble.failures)
		}
	})
}

// untidyStore fails to tidy a few times.
type untidyStore struct {
	record.Store
	failures int
}

func (s *untidyStore) Commit(ops []record.Op, done func([]record.OpResult, error)) {
	if _, ok := ops[0].(*record.Tidy); ok && s.failures > 0 {
		s.failures--
		done(nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the disk is full"})
		return
	}
	s.Store.Commit(ops, done)
}
