package queue_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
)

// sharedStore is a store as hosts share one: with a clock of its own, a lease that may not have been renewed, and
// commits of which the outcome gets lost, with the term.
type sharedStore struct {
	record.Store
	ahead   atomic.Int64 // of the store's clock, against the host's
	holding atomic.Bool
	commits atomic.Int64

	losing atomic.Bool // the next commit goes in and gets lost, and the term with it
	failed chan struct{}
	end    func()
}

var _ record.Leased = (*sharedStore)(nil)

func newShared(store record.Store, ahead time.Duration) *sharedStore {
	s := &sharedStore{Store: store, failed: make(chan struct{})}
	s.ahead.Store(int64(ahead))
	s.end = sync.OnceFunc(func() { close(s.failed) })
	return s
}

func (s *sharedStore) Now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

func (s *sharedStore) Holding() bool { return s.holding.Load() }

func (s *sharedStore) Failed() <-chan struct{} { return s.failed }

func (s *sharedStore) Err() error {
	select {
	case <-s.failed:
		return fmt.Errorf("%w: in this test", record.ErrTermOver)
	default:
		return nil
	}
}

func (s *sharedStore) Commit(ops []record.Op, done func([]record.OpResult, error)) {
	s.commits.Add(1)
	switch {
	case s.Err() != nil:
		go done(nil, s.Err())
	case s.losing.Load():
		s.Store.Commit(ops, func([]record.OpResult, error) {
			s.end()
			done(nil, s.Err())
		})
	default:
		s.Store.Commit(ops, done)
	}
}

// leading gives the fixture a queue over a shared store.
func leading(t *testing.T) (*fixture, *sharedStore, *queuetest.Memory) {
	t.Helper()
	memory := queuetest.NewMemory()
	t.Cleanup(func() { _ = memory.Close() })
	store := newShared(memory, 0)
	return reopenAny(t, store), store, memory
}

// successor is the queue of the host that leads next.
func (f *fixture) successor(memory *queuetest.Memory) *fixture {
	f.t.Helper()
	if err := f.Close(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return reopenAny(f.t, newShared(memory, 0))
}

// A submit that went in although its outcome got lost is not acknowledged by a queue that will never hand it out; the
// next one does.
func TestSubmitOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store, memory := leading(t)
		store.losing.Store(true)
		spec := jobhost.Spec{ID: "a", Worker: "w"}
		for range 2 {
			receipt, err := f.Submit(t.Context(), spec)
			wantCode(t, err, jobhost.CodeUnavailable)
			if receipt.ID != "" || jobhost.HintOf(err) == "" {
				t.Fatalf("answered %+v, %v", receipt, err)
			}
		}
		g := f.successor(memory)
		if receipt, err := g.Submit(t.Context(), spec); err != nil || !receipt.Deduplicated {
			t.Fatalf("the next host answers %+v, %v", receipt, err)
		}
		if lease := g.take(g.Slot("w")); lease.Job.ID != "a" {
			t.Fatalf("took %s", lease.Job.ID)
		}
	})
}

// The same with what an attempt has come to.
func TestSettlementOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]jobhost.Outcome{
		"snooze":  {Kind: jobhost.OutcomeSnoozed, Snooze: time.Second},
		"retry":   failed(true),
		"success": succeeded("out"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store, memory := leading(t)
				id := f.submit(jobhost.Spec{})
				lease := f.take(f.Slot("w"))
				store.losing.Store(true)
				f.settle(lease, outcome)
				if kinds := f.kinds(id); len(kinds) != 2 {
					t.Errorf("the old host tells of %v", kinds)
				}
				time.Sleep(time.Minute)
				if leases := f.takeLater(t.Context()); len(leases) != 0 {
					t.Error("the old host hands out a task")
				}
				g := f.successor(memory)
				if outcome.Kind == jobhost.OutcomeSucceeded {
					if job := g.job(id); job.State != jobhost.Succeeded {
						t.Errorf("the job is %v", job.State)
					}
					return
				}
				lease = g.take(g.Slot("w"))
				g.settle(lease, succeeded("out"))
				if job := g.job(id); job.State != jobhost.Succeeded {
					t.Errorf("the job is %v", job.State)
				}
			})
		})
	}
}

// When the term is over nothing is handed out any more, whatever waits, and what is being read for a slot isn't begun.
func TestNothingBeginsAfterTheTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := queuetest.NewMemory()
		defer memory.Close()
		slow := &troubledStore{Store: memory}
		store := newShared(slow, 0)
		f := reopenAny(t, store, func(c *queue.Config) { c.ResidentBytes = 1 })
		first := f.submit(jobhost.Spec{})
		f.submit(jobhost.Spec{})
		read := make(chan struct{})
		slow.trouble(func(s *troubledStore) { s.holdReads = read })
		reading := f.takeLater(t.Context())
		store.end()
		slow.trouble(func(s *troubledStore) { s.holdReads = nil })
		close(read)
		waiting := f.takeLater(t.Context())
		time.Sleep(time.Minute)
		if len(reading)+len(waiting) != 0 {
			t.Errorf("%d and %d tasks were handed out", len(reading), len(waiting))
		}
		if kinds := f.kinds(first); len(kinds) != 1 {
			t.Errorf("it tells of %v", kinds)
		}
		why, err := f.Why(t.Context(), first)
		if err != nil || why.State != jobhost.Held && why.State != jobhost.Scheduled {
			t.Errorf("why: %+v, %v", why, err)
		}
		f.Stop()
	})
}

// While the lease is not renewed nothing is handed out; when it is, that goes on by itself.
func TestNothingBeginsWithoutTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store, _ := leading(t)
		store.holding.Store(true)
		id := f.submit(jobhost.Spec{})
		leases := f.takeLater(t.Context())
		time.Sleep(700 * time.Millisecond)
		if len(leases) != 0 {
			t.Fatal("a task was handed out")
		}
		why, err := f.Why(t.Context(), id)
		if err != nil || why.State != jobhost.Held || why.Code != "lease" {
			t.Errorf("why: %+v, %v", why, err)
		}
		store.holding.Store(false)
		began := time.Now()
		<-leases
		if waited := time.Since(began); waited > 200*time.Millisecond {
			t.Errorf("it went on %v after the lease was renewed", waited)
		}
	})
}
