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
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
)

// fixture is a queue with one worker, "w", on a store in memory.
type fixture struct {
	*queue.Queue
	t      *testing.T
	store  *sqlitequeue.Store
	mu     sync.Mutex // protects events
	events []jobhost.Event
}

func setup(t *testing.T, change ...func(*queue.Config)) *fixture {
	t.Helper()
	store, err := sqlitequeue.Open(sqlitequeue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return reopen(t, store, change...)
}

// reopen makes a second queue over the store, as after a restart.
func reopen(t *testing.T, store *sqlitequeue.Store, change ...func(*queue.Config)) *fixture {
	t.Helper()
	f := reopenAny(t, store, change...)
	f.store = store
	return f
}

// reopenAny makes a queue over any store.
func reopenAny(t *testing.T, store record.Store, change ...func(*queue.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t}
	retry := jobhost.DefaultRetry()
	retry.Jitter = 0
	cfg := queue.Config{
		Workers: []queue.Worker{{Name: "w", Capacity: 1_000_000, Retry: retry, Timeout: time.Minute}},
		Publish: func(e jobhost.Event) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.events = append(f.events, e)
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	q, err := queue.New(t.Context(), store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	f.Queue = q
	return f
}

func (f *fixture) submit(spec jobhost.Spec) string {
	f.t.Helper()
	if spec.Worker == "" {
		spec.Worker = "w"
	}
	receipt, err := f.Submit(f.t.Context(), spec)
	if err != nil {
		f.t.Fatal(err)
	}
	return receipt.ID
}

func (f *fixture) take(slot *queue.Slot) *queue.Lease {
	f.t.Helper()
	lease, err := slot.Take(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return lease
}

// settle settles and waits until that is durable.
func (f *fixture) settle(lease *queue.Lease, outcome jobhost.Outcome) {
	f.Settle(lease, queue.Report{Outcome: outcome})
	synctest.Wait()
}

func (f *fixture) job(id string) jobhost.Job {
	f.t.Helper()
	job, err := f.Job(f.t.Context(), id)
	if err != nil {
		f.t.Fatal(err)
	}
	return job
}

func (f *fixture) kinds(id string) []jobhost.EventKind {
	f.mu.Lock()
	defer f.mu.Unlock()
	var kinds []jobhost.EventKind
	for _, e := range f.events {
		if e.Job == id {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

func succeeded(out string) jobhost.Outcome {
	return jobhost.Outcome{Kind: jobhost.OutcomeSucceeded, Output: []byte(out)}
}

func failed(retryable bool) jobhost.Outcome {
	return jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: &jobhost.Failure{
		Code: "broken", Category: jobhost.CategoryUnknown, Severity: jobhost.SeverityError, Message: "it broke", Retryable: retryable,
	}}
}

func wantCode(t *testing.T, err error, code jobhost.Code) {
	t.Helper()
	if got := jobhost.CodeOf(err); got != code {
		t.Fatalf("error %v has code %q, want %q", err, got, code)
	}
}

func TestJobFromSubmitToResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{Payload: []byte("in"), Labels: map[string]string{"k": "v"}})
		if state := f.job(id).State; state != jobhost.Ready {
			t.Fatalf("submitted job is %v", state)
		}
		lease := f.take(f.Slot("w"))
		if string(lease.Job.Payload) != "in" || lease.Number() != 1 || lease.Job.Labels["k"] != "v" {
			t.Fatalf("leased %+v", lease.Job)
		}
		if state := f.job(id).State; state != jobhost.Running {
			t.Fatalf("leased job is %v", state)
		}
		f.settle(lease, succeeded("out"))
		job := f.job(id)
		if job.State != jobhost.Succeeded || job.Tasks[0].Attempt != 1 || job.EndedAt == nil {
			t.Fatalf("settled job is %+v", job)
		}
		result, err := f.Result(t.Context(), id, 0)
		if err != nil || string(result.Data) != "out" {
			t.Fatalf("result %q, %v", result.Data, err)
		}
		want := []jobhost.EventKind{jobhost.EventSubmitted, jobhost.EventStarted, jobhost.EventSucceeded, jobhost.EventEnded}
		if got := f.kinds(id); !slices.Equal(got, want) {
			t.Fatalf("events %v, want %v", got, want)
		}
	})
}

func TestRetryUntilDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		slot := f.Slot("w")
		id := f.submit(jobhost.Spec{MaxAttempts: 3})
		var waits []time.Duration
		last := time.Now()
		for range 3 {
			lease := f.take(slot) // time passes until the retry is due
			waits = append(waits, time.Since(last).Round(10*time.Millisecond))
			last = time.Now()
			f.settle(lease, failed(true))
		}
		if want := []time.Duration{0, time.Second, 2 * time.Second}; !slices.Equal(waits, want) {
			t.Fatalf("waited %v before the attempts, want %v", waits, want)
		}
		job := f.job(id)
		if job.State != jobhost.Dead || len(job.Failures) != 3 || job.Failures[2].Attempt != 3 {
			t.Fatalf("job is %v with %d failures", job.State, len(job.Failures))
		}
	})
}

func TestPermanentFailureIsDeadAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{})
		f.settle(f.take(f.Slot("w")), failed(false))
		if job := f.job(id); job.State != jobhost.Dead || job.Tasks[0].Attempt != 1 {
			t.Fatalf("job is %+v", job)
		}
	})
}

func TestSnoozeAndReturnDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		slot := f.Slot("w")
		id := f.submit(jobhost.Spec{MaxAttempts: 1})
		f.settle(f.take(slot), jobhost.Outcome{Kind: jobhost.OutcomeSnoozed, Snooze: time.Hour})
		if job := f.job(id); job.State != jobhost.Scheduled {
			t.Fatalf("snoozed job is %v", job.State)
		}
		before := time.Now()
		lease := f.take(slot)
		if slept := time.Since(before).Round(time.Second); slept != time.Hour {
			t.Fatalf("snoozed for %v", slept)
		}
		f.settle(lease, jobhost.Outcome{Kind: jobhost.OutcomeReturned})
		lease = f.take(slot)
		if lease.Number() != 1 {
			t.Fatalf("attempt is %d after a snooze and a return, want 1", lease.Number())
		}
		f.settle(lease, succeeded(""))
		if job := f.job(id); job.State != jobhost.Succeeded {
			t.Fatalf("job is %v", job.State)
		}
	})
}

func TestOrderByPriorityThenAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		for _, name := range []string{"background", "low", "normal", "high", "critical"} {
			p, err := jobhost.ParsePriority(name)
			if err != nil {
				t.Fatal(err)
			}
			f.submit(jobhost.Spec{ID: name + "-1", Priority: p})
			f.submit(jobhost.Spec{ID: name + "-2", Priority: p})
		}
		slot := f.Slot("w")
		var order []string
		for range 10 {
			lease := f.take(slot)
			order = append(order, lease.Job.ID)
			f.settle(lease, succeeded(""))
		}
		want := []string{
			"critical-1", "critical-2", "high-1", "high-2", "normal-1", "normal-2",
			"low-1", "low-2", "background-1", "background-2",
		}
		if !slices.Equal(order, want) {
			t.Fatalf("order %v", order)
		}
	})
}

// The known failure of others: a background task that never runs because more
// important ones keep arriving.
func TestAgingUnderSteadyArrivals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		slot := f.Slot("w")
		f.submit(jobhost.Spec{ID: "old", Priority: jobhost.Background})
		began := time.Now()
		for range 2000 {
			// Two critical ones arrive for each that can run.
			f.submit(jobhost.Spec{Priority: jobhost.Critical})
			f.submit(jobhost.Spec{Priority: jobhost.Critical})
			lease := f.take(slot)
			if lease.Job.ID == "old" {
				if waited := time.Since(began); waited < 4*time.Minute || waited > 10*time.Minute {
					t.Fatalf("the background task waited %v", waited)
				}
				return
			}
			f.settle(lease, succeeded(""))
			time.Sleep(time.Second) // simulated: what the task took
		}
		t.Fatal("the background task never ran")
	})
}

func counts(f *fixture) jobhost.Counts {
	stats := f.Stats("w")
	return stats.Counts()
}

func TestTakeNothingOnceTheContextHasEnded(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.submit(jobhost.Spec{})
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the worker is being stopped")
	cancel(stopped)
	for range 100 { // two ready arms of a select are taken at random
		if _, err := f.Slot("w").Take(ctx); !errors.Is(err, stopped) {
			t.Fatalf("take: %v", err)
		}
	}
	if n := counts(f); n[jobhost.Ready] != 1 {
		t.Errorf("%d tasks are ready", n[jobhost.Ready])
	}
}
