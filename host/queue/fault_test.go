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

// troubled gives the fixture a queue over a troubled store that keeps no bodies.
func troubled(t *testing.T, change ...func(*queue.Config)) (*fixture, *troubledStore) {
	t.Helper()
	store := &troubledStore{Store: queuetest.NewMemory()}
	t.Cleanup(func() { _ = store.Close() })
	f := reopenAny(t, store, append(change, func(c *queue.Config) { c.ResidentBytes = 1 })...)
	return f, store
}

// takeLater takes in the background.
func (f *fixture) takeLater(ctx context.Context) <-chan *queue.Lease {
	leases := make(chan *queue.Lease, 1)
	go func() {
		if lease, err := f.Slot("w").Take(ctx); err == nil {
			leases <- lease
		}
	}()
	synctest.Wait()
	return leases
}

// A slot that meets a task whose cancel is durable, but not told yet, must
// leave the count of the task to the cancel.
func TestTakeBetweenACancelAndItsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := troubled(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		id := f.submit(jobhost.Spec{})
		hold := make(chan struct{})
		store.trouble(func(s *troubledStore) { s.holdCallbacks = hold })
		go func() { _, _ = f.Cancel(ctx, id) }()
		synctest.Wait()
		leases := f.takeLater(ctx)
		store.trouble(func(s *troubledStore) { s.holdCallbacks = nil })
		close(hold)
		synctest.Wait()
		if n := counts(f); n.Total() != 0 {
			t.Fatalf("%v tasks are counted after the cancel", n)
		}
		next := f.submit(jobhost.Spec{})
		if lease := <-leases; lease.Job.ID != next {
			t.Fatalf("took %s", lease.Job.ID)
		}
	})
}

// What a read for another task brought along may be older than a revival.
func TestRevivedTaskIsNotLostBehindAReadOfItsNeighbour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		first, id := f.submit(jobhost.Spec{}), f.submit(jobhost.Spec{})
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		store := &troubledStore{Store: f.store}
		f = reopenAny(t, store) // has no bodies yet
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if _, err := f.Cancel(ctx, id); err != nil { // its entry stays behind that of the first
			t.Fatal(err)
		}
		hold := make(chan struct{})
		store.trouble(func(s *troubledStore) { s.holdReads = hold })
		reader := f.takeLater(ctx) // reads both
		if _, err := f.Retry(ctx, id); err != nil {
			t.Fatal(err)
		}
		waiter := f.takeLater(ctx)
		store.trouble(func(s *troubledStore) { s.holdReads = nil })
		close(hold)
		synctest.Wait()
		if a, b := len(reader), len(waiter); a != 1 || b != 1 {
			t.Fatalf("slots got %d tasks and %d, want one each", a, b)
		}
		if lease := <-reader; lease.Job.ID != first {
			t.Fatalf("took %s first", lease.Job.ID)
		}
	})
}

// A slot does not run through the whole backlog while the store can't be read.
func TestReadsThatFailAreNotHurried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := troubled(t)
		for range 100 {
			f.submit(jobhost.Spec{})
		}
		store.trouble(func(s *troubledStore) { s.failReads = -1 })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := f.Slot("w").Take(ctx); err != context.DeadlineExceeded {
			t.Fatalf("take: %v", err)
		}
		if n := store.failed.Load(); n > 11 {
			t.Fatalf("%d reads in 10 s", n)
		}
	})
}

// A task that was put back after a read that failed says until when.
func TestTaskThatWasPutBackSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := troubled(t)
		id := f.submit(jobhost.Spec{})
		store.trouble(func(s *troubledStore) { s.failReads = 1 })
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _ = f.Slot("w").Take(ctx)
		job := f.job(id)
		if n := counts(f); job.State != jobhost.Scheduled || n[jobhost.Scheduled] != 1 {
			t.Fatalf("job is %v, counts %v", job.State, n)
		}
		if at := job.Tasks[0].ReadyAt; !at.After(time.Now()) {
			t.Fatalf("it may run at %v, which was before", at)
		}
	})
}

// A cancelled attempt whose read then fails leaves no entry behind.
func TestCancelDuringAReadThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := troubled(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		id := f.submit(jobhost.Spec{})
		hold := make(chan struct{})
		store.trouble(func(s *troubledStore) { s.holdReads, s.failReads = hold, 1 })
		leases := f.takeLater(ctx)
		if _, err := f.Cancel(ctx, id); err != nil {
			t.Fatal(err)
		}
		store.trouble(func(s *troubledStore) { s.holdReads = nil })
		close(hold)
		synctest.Wait()
		if n := counts(f); n.Total() != 0 {
			t.Fatalf("%v tasks are counted after the cancel", n)
		}
		next := f.submit(jobhost.Spec{})
		if lease := <-leases; lease.Job.ID != next {
			t.Fatalf("took %s", lease.Job.ID)
		}
	})
}

// An attempt that was cancelled and still runs is no longer the task's.
func TestOldAttemptIsNotTheRevivedTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{})
		f.take(f.Slot("w"))
		if _, err := f.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		page, err := f.Jobs(t.Context(), jobhost.Filter{State: jobhost.Running})
		if n := counts(f); err != nil || len(page.Jobs) != 0 || n.Total() != 0 {
			t.Fatalf("after the cancel: counts %v, running %+v, %v", n, page.Jobs, err)
		}
		job, err := f.Retry(t.Context(), id)
		if n := counts(f); err != nil || job.State != jobhost.Ready || n[jobhost.Running] != 0 {
			t.Fatalf("after the retry: job is %v, counts %v, %v", job.State, n, err)
		}
	})
}

// A task that was taken back goes before those that became ready after it.
func TestReturnedTaskKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		slot := f.Slot("w")
		first := f.submit(jobhost.Spec{})
		time.Sleep(time.Second)
		f.submit(jobhost.Spec{})
		f.settle(f.take(slot), jobhost.Outcome{Kind: jobhost.OutcomeReturned})
		if lease := f.take(slot); lease.Job.ID != first {
			t.Fatal("a younger task went first")
		}
	})
}

func TestSubmitAgainToAFullQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(c *queue.Config) { c.Workers[0].Capacity = 2 })
		f.submit(jobhost.Spec{ID: "a"})
		f.submit(jobhost.Spec{ID: "b"})
		receipt, err := f.Submit(t.Context(), jobhost.Spec{ID: "a", Worker: "w"})
		if err != nil || !receipt.Deduplicated || receipt.State != jobhost.Ready {
			t.Fatalf("again: %+v, %v", receipt, err)
		}
		answers, err := f.SubmitBatch(t.Context(), []jobhost.Spec{
			{ID: "b", Worker: "w"}, {ID: "c", Worker: "w"}, {ID: "a", Worker: "w", Payload: []byte("other")}, {Worker: "w"},
		})
		if err != nil || answers[0].Err != nil || !answers[0].Receipt.Deduplicated {
			t.Fatalf("again in a batch: %+v, %v", answers, err)
		}
		wantCode(t, answers[1].Err, jobhost.CodeExhausted)
		wantCode(t, answers[2].Err, jobhost.CodeConflict)
		wantCode(t, answers[3].Err, jobhost.CodeExhausted)
		if n := counts(f); n.Total() != 2 {
			t.Fatalf("%d tasks wait in a queue of 2", n.Total())
		}
	})
}

func TestRetryNeedsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(c *queue.Config) { c.Workers[0].Capacity = 2 })
		slot := f.Slot("w")
		dead := f.submit(jobhost.Spec{Tasks: 2})
		f.settle(f.take(slot), failed(false))
		f.settle(f.take(slot), failed(false))
		waiting := f.submit(jobhost.Spec{})
		_, err := f.Retry(t.Context(), dead)
		wantCode(t, err, jobhost.CodeExhausted)
		_, err = f.Retry(t.Context(), waiting)
		wantCode(t, err, jobhost.CodeConflict)
		f.take(slot)
		if job, err := f.Retry(t.Context(), dead); err != nil || job.State != jobhost.Ready {
			t.Fatalf("retried job is %v, %v", job.State, err)
		}
		_, err = f.Submit(t.Context(), jobhost.Spec{Worker: "w"})
		wantCode(t, err, jobhost.CodeExhausted)
	})
}

// The event says the same as an answer.
func TestSnoozeAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		slot := f.Slot("w")
		id := f.submit(jobhost.Spec{})
		f.settle(f.take(slot), failed(true))
		f.settle(f.take(slot), jobhost.Outcome{Kind: jobhost.OutcomeSnoozed, Snooze: time.Hour})
		f.mu.Lock()
		event := f.events[len(f.events)-1]
		f.mu.Unlock()
		if job := f.job(id); event.Kind != jobhost.EventSnoozed || event.State != job.State || job.State != jobhost.Retrying {
			t.Fatalf("event %s tells %v, the job is %v", event.Kind, event.State, job.State)
		}
		why, err := f.Why(t.Context(), id)
		if err != nil || why.Code != "retry" {
			t.Fatalf("why: %+v, %v", why, err)
		}
	})
}

// A task of which the payload is damaged is dead at once, and says why; it never runs,
// is not tried again, and keeps no other from running.
func TestDamagedPayload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store := troubled(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		bad, good := f.submit(jobhost.Spec{}), f.submit(jobhost.Spec{})
		store.trouble(func(s *troubledStore) { s.damaged = bad })
		if lease := <-f.takeLater(ctx); lease.Job.ID != good {
			t.Fatalf("took %s", lease.Job.ID)
		}
		synctest.Wait()
		job, err := f.Job(ctx, bad)
		if err != nil || job.State != jobhost.Dead || len(job.Failures) != 1 || job.Failures[0].Retryable ||
			job.Failures[0].Code != jobhost.FailDamaged || job.Failures[0].Message != "the payload of it" {
			t.Fatalf("%+v, %v", job, err)
		}
		if _, err := f.OpenPayload(ctx, bad); jobhost.CodeOf(err) != jobhost.CodeDamaged {
			t.Fatalf("its payload: %v", err)
		}
	})
}
