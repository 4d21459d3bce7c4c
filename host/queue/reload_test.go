package queue_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
)

// worker is the fixture's, with the capacity given.
func worker(name string, capacity int) queue.Worker {
	retry := jobhost.DefaultRetry()
	retry.Jitter = 0
	return queue.Worker{Name: name, Capacity: capacity, Retry: retry, Timeout: time.Minute}
}

func (f *fixture) wantState(id string, state jobhost.State) {
	f.t.Helper()
	if job := f.job(id); job.State != state {
		f.t.Errorf("job %s is %v, want %v", id, job.State, state)
	}
}

// put loads a worker as a host would.
func (f *fixture) put(w queue.Worker) {
	f.t.Helper()
	if err := f.Prepare(f.t.Context(), w); err != nil {
		f.t.Fatal(err)
	}
	f.Put(w)
}

func TestParkedWorkerHoldsItsTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		slot := f.Slot("w")
		f.submit(jobhost.Spec{ID: "runs"})
		running := f.take(slot)
		f.submit(jobhost.Spec{ID: "waits"})
		f.submit(jobhost.Spec{ID: "later", Delay: time.Hour})
		f.Park("w")

		f.wantState("runs", jobhost.Running)
		f.wantState("waits", jobhost.Held)
		f.wantState("later", jobhost.Held)
		why, err := f.Why(t.Context(), "waits")
		if err != nil || why.Code != "no_worker" || !strings.Contains(why.Reason, `no worker "w" is loaded`) {
			t.Errorf("why: %+v, %v", why, err)
		}
		_, err = f.Submit(t.Context(), jobhost.Spec{Worker: "w"})
		wantCode(t, err, jobhost.CodeNotFound)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if lease, err := slot.Take(ctx); err == nil {
			t.Errorf("a parked worker was given %s", lease.Job.ID)
		}

		// What runs is settled as usual; its next attempt is held.
		f.settle(running, failed(true))
		f.wantState("runs", jobhost.Held)

		f.Put(worker("w", 10))
		for _, want := range []string{"waits", "runs", "later"} {
			lease := f.take(slot)
			if lease.Job.ID != want {
				t.Fatalf("took %s, want %s", lease.Job.ID, want)
			}
			f.settle(lease, succeeded(""))
		}
		if job := f.job("runs"); job.State != jobhost.Succeeded || job.Tasks[0].Attempt != 2 {
			t.Errorf("job is %v at attempt %d", job.State, job.Tasks[0].Attempt)
		}
	})
}

func TestHeldJobsAreListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.submit(jobhost.Spec{ID: "waits"})
		f.submit(jobhost.Spec{ID: "runs", Priority: jobhost.High})
		f.take(f.Slot("w"))
		f.Park("w")
		for state, want := range map[jobhost.State]string{
			jobhost.Held: "[waits]", jobhost.Running: "[runs]", jobhost.Ready: "[]",
		} {
			for _, limit := range []int{0, 1} {
				page, err := f.Jobs(t.Context(), jobhost.Filter{State: state, Limit: limit})
				ids := []string{}
				for _, job := range page.Jobs {
					ids = append(ids, job.ID)
				}
				if err != nil || fmt.Sprint(ids) != want || page.Next != "" {
					t.Errorf("%v jobs are %v, %v, next %q; want %s", state, ids, err, page.Next, want)
				}
			}
		}
	})
}

func TestParkedTasksCanBeCancelledAndRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{})
		f.Park("w")
		if job, err := f.Cancel(t.Context(), id); err != nil || job.State != jobhost.Cancelled {
			t.Fatalf("cancel: %v, %v", job.State, err)
		}
		if job, err := f.Retry(t.Context(), id); err != nil || job.State != jobhost.Held {
			t.Fatalf("retry: %v, %v", job.State, err)
		}
		f.Put(worker("w", 10))
		f.settle(f.take(f.Slot("w")), succeeded(""))
		f.wantState(id, jobhost.Succeeded)
	})
}

// Tasks from before a restart, of a worker that the manifest had lost, run
// when it comes back.
func TestWorkerComesBackAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id, dead := f.submit(jobhost.Spec{}), f.submit(jobhost.Spec{})
		if _, err := f.Cancel(t.Context(), dead); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		f = reopen(t, f.store, func(c *queue.Config) { c.Workers = []queue.Worker{worker("other", 10)} })
		f.wantState(id, jobhost.Held)
		if job, err := f.Retry(t.Context(), dead); err != nil || job.State != jobhost.Held {
			t.Fatalf("retry: %v, %v", job.State, err)
		}
		if err := f.Prepare(t.Context(), worker("w", 10)); err != nil {
			t.Fatal(err)
		}
		f.wantState(id, jobhost.Held) // prepared is not loaded
		f.put(worker("w", 10))
		for range 2 {
			f.settle(f.take(f.Slot("w")), succeeded(""))
		}
		f.wantState(id, jobhost.Succeeded)
		f.wantState(dead, jobhost.Succeeded)
		if n := f.Entries("w"); n != 0 {
			t.Errorf("the lane holds %d entries", n)
		}
	})
}

func TestSettingsChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.submit(jobhost.Spec{})
		small := worker("w", 1)
		small.Retry.MaxAttempts, small.Timeout = 1, 7*time.Second
		f.Put(small)
		_, err := f.Submit(t.Context(), jobhost.Spec{Worker: "w"})
		wantCode(t, err, jobhost.CodeExhausted)
		f.take(f.Slot("w"))
		job := f.job(f.submit(jobhost.Spec{}))
		if job.MaxAttempts != 1 || time.Duration(job.Timeout) != 7*time.Second {
			t.Errorf("a new job has %d attempts and timeout %v", job.MaxAttempts, job.Timeout)
		}
	})
}

// TestParkHammer parks and loads a worker while jobs are submitted, run,
// cancelled and retried. Each job ends once, and nothing is left behind.
func TestParkHammer(t *testing.T) {
	t.Parallel()
	const producers, each = 4, 60
	store, err := sqlitequeue.Open(sqlitequeue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	f := reopen(t, store)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	var slots, producing sync.WaitGroup
	for range 3 {
		slots.Go(func() {
			for slot := f.Slot("w"); ; {
				lease, err := slot.Take(ctx)
				if err != nil {
					return
				}
				f.Settle(lease, queue.Report{Outcome: succeeded("")})
			}
		})
	}
	for p := range producers {
		producing.Go(func() {
			for i := range each {
				spec := jobhost.Spec{ID: fmt.Sprintf("%d-%d", p, i), Worker: "w"}
				for {
					_, err := f.Submit(ctx, spec)
					if err == nil {
						break
					}
					if jobhost.CodeOf(err) != jobhost.CodeNotFound { // parked
						t.Errorf("submit: %v", err)
						return
					}
				}
				if i%3 == 0 {
					if _, err := f.Cancel(ctx, spec.ID); err == nil {
						_, _ = f.Retry(ctx, spec.ID)
					}
				}
			}
		})
	}
	producing.Go(func() {
		for i := range 200 {
			f.Park("w")
			if err := f.Prepare(ctx, worker(fmt.Sprintf("w%d", i%7), 10)); err != nil {
				t.Error(err)
			}
			f.Put(worker("w", 1_000_000))
		}
	})
	producing.Wait()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for p := range producers {
		for i := range each {
			id := fmt.Sprintf("%d-%d", p, i)
			for job := f.job(id); job.State != jobhost.Succeeded; job = f.job(id) {
				if job.State.Ended() {
					t.Fatalf("job %s is %v", id, job.State)
				}
				<-tick.C
			}
		}
	}
	stop()
	slots.Wait()
}
