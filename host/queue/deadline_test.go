package queue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
)

// openTroubled returns a queue with the worker "w" over a store that can fail.
func openTroubled(t *testing.T) (*queue.Queue, *troubledStore) {
	t.Helper()
	store := &troubledStore{Store: queuetest.NewMemory()}
	q, err := queue.New(t.Context(), store, queue.Config{
		Workers: []queue.Worker{{Name: "w", Capacity: 1 << 20, Timeout: time.Minute, Retry: jobhost.DefaultRetry(), PerKey: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = store.Close()
	})
	return q, store
}

func wantJob(t *testing.T, q *queue.Queue, id string, state jobhost.State) jobhost.Job {
	t.Helper()
	job, err := q.Job(t.Context(), id)
	if err != nil || job.State != state {
		t.Fatalf("job %s is %s (%v), want %s; failures %+v", id, job.State, err, state, job.Failures)
	}
	return job
}

// Tasks are given up at their deadline and not before, wherever they wait.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, _ := openTroubled(t)
		for i, spec := range []jobhost.Spec{
			{ID: "ready"},
			{ID: "scheduled", Delay: time.Second},
			{ID: "keyed", ConcurrencyKey: "k"},
			{ID: "many", Tasks: 3, ConcurrencyKey: "k"},
			{ID: "later", Delay: 5 * time.Second, ConcurrencyKey: "l"},
		} {
			spec.Deadline = 10*time.Second + time.Duration(i)*time.Millisecond
			put(t, q, spec)
		}
		put(t, q, jobhost.Spec{ID: "patient"})
		time.Sleep(10*time.Second - time.Millisecond)
		synctest.Wait()
		wantJob(t, q, "ready", jobhost.Ready)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		for _, id := range []string{"ready", "scheduled", "keyed", "many", "later"} {
			job := wantJob(t, q, id, jobhost.Dead)
			if f := job.Failures[0]; len(job.Failures) != job.TaskCount || f.Code != jobhost.FailDeadline || job.Tasks[0].Attempt != 0 {
				t.Errorf("job %s: %+v", id, job)
			}
		}
		slot := q.Slot("w")
		lease := take(t, slot)
		if lease.Job.ID != "patient" {
			t.Errorf("got %s", lease.Job.ID)
		}
		q.Settle(lease, queue.Report{Outcome: succeeded("")})
		synctest.Wait()
		if n := q.Stats("w").Counts(); n.Total() != 0 {
			t.Errorf("%v tasks are left", n)
		}
		if n := q.Live("w") + q.Remains("w"); n != 0 {
			t.Errorf("the lane still knows of %d things", n)
		}
	})
}

// An attempt that runs is not stopped by its deadline; the next one doesn't come.
func TestDeadlineOfARunningTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, _ := openTroubled(t)
		put(t, q, jobhost.Spec{ID: "good", Deadline: time.Second}, jobhost.Spec{ID: "bad", Deadline: time.Second})
		slot, other := q.Slot("w"), q.Slot("w")
		good, bad := take(t, slot), take(t, other)
		time.Sleep(time.Minute)
		q.Settle(good, queue.Report{Outcome: succeeded("")})
		q.Settle(bad, queue.Report{Outcome: failed(true)})
		synctest.Wait()
		wantJob(t, q, "good", jobhost.Succeeded)
		if job := wantJob(t, q, "bad", jobhost.Dead); len(job.Failures) != 2 || job.Failures[1].Code != jobhost.FailDeadline {
			t.Errorf("got failures %+v", job.Failures)
		}
	})
}

// A deadline holds when the store fails at that moment, and for another queue.
func TestDeadlineInTrouble(t *testing.T) {
	t.Parallel()
	for _, trouble := range []string{"reads fail", "commits fail"} {
		t.Run(trouble, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q, store := openTroubled(t)
				put(t, q, jobhost.Spec{ID: "a", Deadline: time.Second, ConcurrencyKey: "k"},
					jobhost.Spec{ID: "b", Deadline: time.Second},
					jobhost.Spec{ID: "c", Deadline: 2 * time.Second, Delay: 1500 * time.Millisecond})
				store.trouble(troubles[trouble])
				time.Sleep(10 * time.Second)
				synctest.Wait()
				wantJob(t, q, "a", jobhost.Ready)
				if n := q.Stats("w").Counts(); n[jobhost.Ready] != 3 {
					t.Errorf("the numbers are %v, want 3 ready", n)
				}
				store.trouble(func(s *troubledStore) { s.failReads, s.failCommits = 0, false })
				time.Sleep(2 * time.Second)
				synctest.Wait()
				for _, id := range []string{"a", "b", "c"} {
					wantJob(t, q, id, jobhost.Dead)
				}
				if n := q.Live("w") + q.Remains("w"); n != 0 {
					t.Errorf("the lane still knows of %d things", n)
				}
			})
		})
	}
}

// A cancel that meets a deadline on its way counts once.
func TestDeadlineMeetsCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, store := openTroubled(t)
		put(t, q, jobhost.Spec{ID: "a", Deadline: time.Second, Tasks: 3})
		store.trouble(troubles["reads take long"])
		time.Sleep(time.Second)
		synctest.Wait()
		if _, err := q.Cancel(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		hold := store.holdReads
		store.trouble(func(s *troubledStore) { s.holdReads = nil })
		close(hold)
		synctest.Wait()
		wantJob(t, q, "a", jobhost.Cancelled)
		if n := q.Stats("w").Counts(); n.Total() != 0 {
			t.Errorf("the numbers are %v", n)
		}
		if n := q.Live("w") + q.Remains("w"); n != 0 {
			t.Errorf("the lane still knows of %d things", n)
		}
	})
}

// Jobs that end long before their deadline leave nothing behind.
func TestDeadlinesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, _ := openTroubled(t)
		slot := q.Slot("w")
		for i := range 5000 {
			put(t, q, jobhost.Spec{ID: fmt.Sprint(i), Deadline: 1000 * time.Hour})
			q.Settle(take(t, slot), queue.Report{Outcome: succeeded("")})
			synctest.Wait()
			if _, err := q.Job(t.Context(), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			if err := q.Delete(t.Context(), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		if n := q.Deadlines("w"); n > 2048 {
			t.Errorf("%d deadlines are kept", n)
		}
	})
}

// The callback of a job comes to its worker with the end, and with no end twice.
func TestCallbackComesWithTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, store := openTroubled(t)
		put(t, q, jobhost.Spec{ID: "a", Callback: jobhost.Callback{Worker: "w"}})
		slot := q.Slot("w")
		lease := take(t, slot)
		store.trouble(troubles["commits fail"])
		q.Settle(lease, queue.Report{Outcome: succeeded("")}) // it will run again
		synctest.Wait()
		store.trouble(func(s *troubledStore) { s.failCommits = false })
		lease = take(t, slot)
		if lease.Job.ID != "a" {
			t.Fatalf("got job %s before a has ended", lease.Job.ID)
		}
		q.Settle(lease, queue.Report{Outcome: succeeded("\xff")})
		told := take(t, slot)
		if got := string(told.Job.Payload); told.Job.ContentType != "application/json" || len(got) == 0 {
			t.Errorf("the callback was told %q", got)
		}
		q.Settle(told, queue.Report{Outcome: succeeded("")})
		synctest.Wait()
		if n := q.Stats("w").Counts(); n.Total() != 0 {
			t.Errorf("%v tasks are left", n)
		}
	})
}
