package queue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/state/payload"
)

// absences is what a queue knows of its payload stores.
type absences struct {
	mu   sync.Mutex // protects away
	away *queue.Away
}

func (a *absences) set(away *queue.Away) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.away = away
}

// Unread implements [queue.Absences].
func (a *absences) Unread(string) *queue.Away {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.away
}

// Unwritten implements [queue.Absences].
func (a *absences) Unwritten() *queue.Away { return nil }

// Room implements [queue.Absences].
func (a *absences) Room() bool { return true }

// Still implements [queue.Absences].
func (a *absences) Still(*queue.Away) bool { return a.Unread("") != nil }

// referring is what a job's payload is when it is too large.
type referring struct{ queue.Objects }

// Put implements [queue.Objects].
func (referring) Put(context.Context, []byte) (payload.Ref, error) {
	return payload.Ref{Store: "s", Key: payload.NewKey(time.Now()), Size: 100}, nil
}

// Release implements [queue.Objects].
func (referring) Release(string, bool) {}

// newAwayBench returns a queue with a worker "w" whose payloads from one byte on are objects.
func newAwayBench(t *testing.T, worker queue.Worker) (*queue.Queue, *absences) {
	t.Helper()
	store, a := queuetest.NewMemory(), &absences{}
	worker.Name, worker.Capacity, worker.Timeout = "w", 100_000, time.Minute
	worker.Retry = jobhost.RetryPolicy{MaxAttempts: 3, Backoff: jobhost.BackoffConstant, Initial: time.Millisecond, Max: time.Millisecond}
	q, err := queue.New(t.Context(), store, queue.Config{Workers: []queue.Worker{worker}, Objects: referring{}, Absences: a, Threshold: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(q.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return q, a
}

func mustSubmit(t *testing.T, q *queue.Queue, spec jobhost.Spec) string {
	t.Helper()
	spec.Worker = "w"
	receipt, err := q.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.ID
}

func mustTake(t *testing.T, s *queue.Slot) *queue.Lease {
	t.Helper()
	lease, err := s.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

var large = []byte("large")

// TestFaultsThatDontPass: an object that can't be read in a store that gives others
// costs attempts in the end, after minutes.
func TestFaultsThatDontPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, _ := newAwayBench(t, queue.Worker{})
		id, slot := mustSubmit(t, q, jobhost.Spec{Payload: large}), q.Slot("w")
		began, taken := time.Now(), 0
		for {
			lease := mustTake(t, slot)
			if taken++; lease.Number() > 1 {
				break
			}
			q.Settle(lease, queue.Report{Outcome: bad(), Fault: &queue.StoreFault{Store: "s", Verb: payload.Get, Err: errors.New("500")}})
			synctest.Wait()
		}
		if taken != 22 || time.Since(began) < 5*time.Minute {
			t.Errorf("the second attempt is the %dth run, after %v", taken, time.Since(began))
		}
		job, err := q.Job(t.Context(), id)
		if err != nil || len(job.Failures) != 1 {
			t.Errorf("got %+v, %v", job, err)
		}
	})
}

// TestAside: tasks that wait for a store are held, count as waiting, and run in their
// order when it is back, each under its key.
func TestAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, a := newAwayBench(t, queue.Worker{PerKey: 1})
		a.set(&queue.Away{Store: "s", Verb: payload.Get, Since: time.Now()})
		var ids []string
		for i := range 5 {
			spec := jobhost.Spec{Payload: large}
			if i > 2 {
				spec.ConcurrencyKey = "k"
			}
			ids = append(ids, mustSubmit(t, q, spec))
			time.Sleep(10 * time.Millisecond)
		}
		small, slot := mustSubmit(t, q, jobhost.Spec{}), q.Slot("w")
		lease := mustTake(t, slot)
		if lease.Job.ID != small {
			t.Fatalf("took %s, want the small one", lease.Job.ID)
		}
		q.Settle(lease, queue.Report{Outcome: good()})
		if n := q.Stats("w").Counts(); n[jobhost.Held] != 5 || n[jobhost.Ready] != 0 {
			t.Errorf("the numbers are %v", n)
		}
		if why, err := q.Why(t.Context(), ids[4]); err != nil || why.Code != "payload_store" {
			t.Errorf("why: %+v, %v", why, err)
		}
		if age := q.Stats("w").OldestReady; age < 50*time.Millisecond {
			t.Errorf("the oldest waits for %v", age)
		}
		a.set(nil)
		q.StoresChanged()
		took := map[string][]string{} // by key: which one has its turn is for the turns to say
		for range ids {
			lease := mustTake(t, slot)
			took[lease.Job.ConcurrencyKey] = append(took[lease.Job.ConcurrencyKey], lease.Job.ID)
			q.Settle(lease, queue.Report{Outcome: good()})
			synctest.Wait()
		}
		if !slices.Equal(took[""], ids[:3]) || !slices.Equal(took["k"], ids[3:]) {
			t.Errorf("took %v, want %v", took, ids)
		}
		if n := q.Stats("w").Counts(); n[jobhost.Held] != 0 || n[jobhost.Ready] != 0 {
			t.Errorf("the numbers are %v", n)
		}
	})
}

// TestHammerAside takes and cancels tasks while their store comes and goes: all end.
func TestHammerAside(t *testing.T) {
	t.Parallel()
	q, a := newAwayBench(t, queue.Worker{})
	const jobs = 400
	var ids []string
	for i := range jobs {
		spec := jobhost.Spec{Payload: large}
		if i%7 == 0 {
			spec.ConcurrencyKey = "k"
		}
		ids = append(ids, mustSubmit(t, q, spec))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all, slots sync.WaitGroup
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if a.set(nil); i%2 == 0 {
				a.set(&queue.Away{Store: "s", Verb: payload.Get})
			}
			q.StoresChanged()
		}
		a.set(nil)
		q.StoresChanged()
	})
	for range 4 {
		slot := q.Slot("w")
		slots.Go(func() {
			for i := 0; ; i++ {
				lease, err := slot.Take(ctx)
				if err != nil {
					return
				}
				report := queue.Report{Outcome: good()}
				if i%5 == 0 {
					report.Fault = &queue.StoreFault{Store: "s", Verb: payload.Put, Err: errors.New("500")}
				}
				q.Settle(lease, report)
			}
		})
	}
	for i, id := range ids {
		if i%10 == 0 {
			_, _ = q.Cancel(t.Context(), id) // it may have ended
		}
	}
	deadline := time.After(time.Minute)
	for open := int64(1); open > 0; {
		n := q.Stats("w").Counts()
		open = n[jobhost.Ready] + n[jobhost.Held] + n[jobhost.Running] + n[jobhost.Scheduled] + n[jobhost.Retrying]
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("the numbers are %v", n)
		}
	}
	cancel()
	slots.Wait()
	all.Wait()
	if n := q.Stats("w").Counts(); n != (jobhost.Counts{}) {
		t.Errorf("the numbers are %v", n)
	}
}
