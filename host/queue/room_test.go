package queue_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
)

// fullStore is a store without room, once it is told to be: patient settlements are
// kept back until it has room again, and all else is refused.
type fullStore struct {
	record.Store

	mu      sync.Mutex // protects what follows
	full    error
	kept    []func()
	flowing chan struct{}
}

var errFull = &jobhost.Error{Code: jobhost.CodeUnavailable, Field: jobhost.FieldDisk, Message: "the disk is full"}

func newFullStore(t *testing.T) *fullStore {
	s := &fullStore{Store: queuetest.NewMemory(), flowing: make(chan struct{})}
	close(s.flowing)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *fullStore) Commit(ops []record.Op, done func([]record.OpResult, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full == nil {
		s.Store.Commit(ops, done)
		return
	}
	if settle, ok := ops[0].(*record.Settle); !ok || !settle.Patient {
		go done(nil, s.full)
		return
	}
	if len(s.kept) == 0 {
		s.flowing = make(chan struct{})
	}
	s.kept = append(s.kept, func() { s.Store.Commit(ops, done) })
}

func (s *fullStore) Full() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full
}

func (s *fullStore) Flowing() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flowing
}

func (s *fullStore) GiveUp() {}

func (s *fullStore) fill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = errFull
}

func (s *fullStore) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, commit := range s.kept {
		commit()
	}
	if len(s.kept) > 0 {
		close(s.flowing)
	}
	s.full, s.kept = nil, nil
}

// A settlement that finds no room waits for it, and no task begins meanwhile. Its
// attempt is made once.
func TestTasksWaitWhileSettlementsDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newFullStore(t)
		f := reopenAny(t, store)
		first, second := f.submit(jobhost.Spec{}), f.submit(jobhost.Spec{})
		slot := f.Slot("w")
		lease := f.take(slot)
		store.fill()
		if _, err := f.Submit(t.Context(), jobhost.Spec{Worker: "w"}); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
			t.Errorf("submit: %v", err)
		}
		f.settle(lease, jobhost.Outcome{Kind: jobhost.OutcomeSucceeded})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := slot.Take(ctx); err != context.DeadlineExceeded {
			t.Fatalf("take while a settlement waits: %v", err)
		}
		store.free()
		synctest.Wait()
		if job := f.job(first); job.State != jobhost.Succeeded || job.Tasks[0].Attempt != 1 {
			t.Errorf("the first job is %v after %d attempts", job.State, job.Tasks[0].Attempt)
		}
		if next := f.take(slot); next.Job.ID != second {
			t.Errorf("took %s, want %s", next.Job.ID, second)
		}
	})
}

// Loading a worker answers while a settlement waits for room that may bring jobs to
// lanes, and keeps no other settlement from being handed over.
func TestPrepareWhileSettlementsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newFullStore(t)
		f := reopenAny(t, store)
		callback := jobhost.Callback{Worker: "w"}
		for range 2 {
			f.submit(jobhost.Spec{Callback: callback})
		}
		one, two := f.take(f.Slot("w")), f.take(f.Slot("w"))
		store.fill()
		f.settle(one, jobhost.Outcome{Kind: jobhost.OutcomeSucceeded})
		prepared := make(chan error, 1)
		go func() {
			prepared <- f.Prepare(t.Context(), queue.Worker{Name: "new", Capacity: 1, Timeout: time.Minute})
		}()
		time.Sleep(time.Minute)
		select {
		case err := <-prepared:
			wantCode(t, err, jobhost.CodeUnavailable)
		default:
			t.Error("a worker that is loaded waits for room")
		}
		if err := f.Prepare(t.Context(), queue.Worker{Name: "w"}); err != nil {
			t.Errorf("a worker that is there: %v", err)
		}
		settled := make(chan struct{})
		go func() {
			defer close(settled)
			f.Settle(two, queue.Report{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeSucceeded}})
		}()
		synctest.Wait()
		select {
		case <-settled:
		default:
			t.Error("a settlement can't be handed over")
		}
		store.free()
		<-settled
		synctest.Wait()
		if err := f.Prepare(t.Context(), queue.Worker{Name: "new", Capacity: 1, Timeout: time.Minute}); err != nil {
			t.Errorf("with room: %v", err)
		}
	})
}

// A queue that stops doesn't keep slots that wait for room.
func TestStopWhileSettlementsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newFullStore(t)
		f := reopenAny(t, store)
		f.submit(jobhost.Spec{})
		slot := f.Slot("w")
		lease := f.take(slot)
		store.fill()
		f.settle(lease, jobhost.Outcome{Kind: jobhost.OutcomeSucceeded})
		f.Stop()
		if _, err := slot.Take(t.Context()); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
			t.Errorf("take after the stop: %v", err)
		}
		store.free()
	})
}

// What was under way when the last host died counts as soon as there is room, and
// its task doesn't run before.
func TestCrashedAttemptWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newFullStore(t)
		f := reopenAny(t, store)
		id := f.submit(jobhost.Spec{})
		lease := f.take(f.Slot("w"))
		f.Stop()
		store.fill()
		again := reopenAny(t, store, func(c *queue.Config) { c.Crashed = []queue.Crashed{crashedAs(lease)} })
		if _, err := again.SettleCrashed(t.Context(), time.Now()); err != errFull {
			t.Fatalf("settle without room: %v", err)
		}
		leases := again.takeLater(t.Context())
		time.Sleep(time.Minute)
		if len(leases) > 0 {
			t.Fatal("the task runs before its last attempt counts")
		}
		store.free()
		if next := <-leases; next.Job.ID != id || next.Number() != 2 || !next.Suspect {
			t.Errorf("next is %s, attempt %d, suspect %t", next.Job.ID, next.Number(), next.Suspect)
		}
	})
}
