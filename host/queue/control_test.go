package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
)

func TestCancelBeforeItRuns(t *testing.T) {
	t.Parallel()
	for _, spec := range []jobhost.Spec{
		{ID: "ready"}, {ID: "scheduled", Delay: time.Hour}, {ID: "several", Tasks: 5},
	} {
		t.Run(spec.ID, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := setup(t)
				id := f.submit(spec)
				job, err := f.Cancel(t.Context(), id)
				if err != nil || job.State != jobhost.Cancelled {
					t.Fatalf("job is %v, %v", job.State, err)
				}
				if again, err := f.Cancel(t.Context(), id); err != nil || again.State != jobhost.Cancelled {
					t.Fatalf("cancelled again: %v, %v", again.State, err)
				}
				other := f.submit(jobhost.Spec{Delay: 2 * time.Hour})
				lease := f.take(f.Slot("w")) // past the time of the scheduled one
				if lease.Job.ID != other {
					t.Fatalf("the cancelled job ran")
				}
				if n := counts(f); n.Total() != 1 {
					t.Fatalf("%d tasks are left, want the running one", n.Total())
				}
			})
		})
	}
}

func TestCancelWhileItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{})
		lease := f.take(f.Slot("w"))
		told := make(chan struct{})
		lease.OnCancel(func() { close(told) })
		if _, err := f.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		<-told
		f.settle(lease, succeeded("too late"))
		if job := f.job(id); job.State != jobhost.Cancelled {
			t.Fatalf("job is %v after a late success", job.State)
		}
		_, err := f.Result(t.Context(), id, 0)
		wantCode(t, err, jobhost.CodeConflict)
		if n := counts(f); n.Total() != 0 {
			t.Fatalf("%d tasks are left", n.Total())
		}
	})
}

func TestOnCancelAfterTheCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{})
		lease := f.take(f.Slot("w"))
		if _, err := f.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		told := make(chan struct{})
		lease.OnCancel(func() { close(told) })
		<-told
	})
}

// A job that is cancelled and retried while its old attempt still runs has two
// attempts at once for a moment; only the new one may settle it.
func TestRetryWhileTheOldAttemptStillRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{})
		old := f.take(f.Slot("w"))
		if _, err := f.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if job, err := f.Retry(t.Context(), id); err != nil || job.State.Ended() {
			t.Fatalf("retried job is %v, %v", job.State, err)
		}
		lease := f.take(f.Slot("w"))
		f.settle(old, succeeded("old"))
		if job := f.job(id); job.State != jobhost.Running {
			t.Fatalf("job is %v after the old attempt settled", job.State)
		}
		f.settle(lease, succeeded("new"))
		result, err := f.Result(t.Context(), id, 0)
		if err != nil || string(result.Data) != "new" {
			t.Fatalf("result %q, %v", result.Data, err)
		}
	})
}

func TestRetryOfTheDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{Tasks: 2})
		slot := f.Slot("w")
		f.settle(f.take(slot), succeeded("0"))
		f.settle(f.take(slot), failed(false))
		if job := f.job(id); job.State != jobhost.Dead {
			t.Fatalf("job is %v", job.State)
		}
		if _, err := f.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		lease := f.take(slot)
		if lease.Index != 1 || lease.Number() != 1 {
			t.Fatalf("task %d, attempt %d runs again", lease.Index, lease.Number())
		}
		f.settle(lease, succeeded("1"))
		if job := f.job(id); job.State != jobhost.Succeeded {
			t.Fatalf("job is %v", job.State)
		}
		_, err := f.Retry(t.Context(), id)
		wantCode(t, err, jobhost.CodeConflict)
		ends := 0
		for _, kind := range f.kinds(id) {
			if kind == jobhost.EventEnded {
				ends++
			}
		}
		if ends != 2 {
			t.Fatalf("the job ended %d times, want 2", ends)
		}
	})
}

func TestDeleteOnlyWhatHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{})
		wantCode(t, f.Delete(t.Context(), id), jobhost.CodeConflict)
		f.settle(f.take(f.Slot("w")), succeeded("x"))
		if err := f.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		_, err := f.Job(t.Context(), id)
		wantCode(t, err, jobhost.CodeNotFound)
		wantCode(t, f.Delete(t.Context(), id), jobhost.CodeNotFound)
	})
}

func TestRestartGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		running := f.submit(jobhost.Spec{ID: "running"})
		f.submit(jobhost.Spec{ID: "ready"})
		f.submit(jobhost.Spec{ID: "later", Delay: time.Hour})
		slot := f.Slot("w")
		lease := f.take(slot)
		if lease.Job.ID != running {
			t.Fatal("wrong order")
		}
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Submit(t.Context(), jobhost.Spec{Worker: "w"}); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
			t.Fatalf("a closed queue answers %v", err)
		}
		if _, err := slot.Take(t.Context()); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
			t.Fatalf("a closed queue hands out: %v", err)
		}

		g := reopen(t, f.store)
		slot = g.Slot("w")
		var order []string
		for range 3 {
			lease := g.take(slot)
			order = append(order, lease.Job.ID)
			if lease.Number() != 1 {
				t.Fatalf("%s is at attempt %d", lease.Job.ID, lease.Number())
			}
			g.settle(lease, succeeded(""))
		}
		if want := []string{"running", "ready", "later"}; !slices.Equal(order, want) {
			t.Fatalf("order %v, want %v", order, want)
		}
	})
}

// Bodies that are not in memory are read from the store, many at a time.
func TestLongBacklogRunsInOrder(t *testing.T) {
	t.Parallel()
	f := setup(t, func(c *queue.Config) { c.ResidentBytes = 20_000 })
	const n = 600
	for i := 0; i < n; i += 100 {
		specs := make([]jobhost.Spec, 100)
		for k := range specs {
			specs[k] = jobhost.Spec{ID: fmt.Sprint("j", i+k), Worker: "w", Payload: fmt.Append(nil, i+k)}
		}
		if _, err := f.SubmitBatch(t.Context(), specs); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Cancel(t.Context(), "j7"); err != nil {
		t.Fatal(err)
	}
	slot := f.Slot("w")
	for i := range n {
		if i == 7 {
			continue
		}
		lease := f.take(slot)
		if want := fmt.Sprint(i); string(lease.Job.Payload) != want || lease.Job.ID != "j"+want {
			t.Fatalf("took %s with %q, want %s", lease.Job.ID, lease.Job.Payload, want)
		}
		f.Settle(lease, queue.Report{Outcome: succeeded("")})
	}
}

func TestMaxRunningIsSharedFairly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(c *queue.Config) {
			other := c.Workers[0]
			other.Name = "other"
			c.Workers = append(c.Workers, other)
			c.MaxRunning = 2
		})
		for range 10 {
			f.submit(jobhost.Spec{Worker: "w"})
			f.submit(jobhost.Spec{Worker: "other"})
		}
		leases := make(chan *queue.Lease, 8)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, worker := range []string{"w", "w", "w", "other", "other", "other"} {
			go func() {
				slot := f.Slot(worker)
				for {
					lease, err := slot.Take(ctx)
					if err != nil {
						return
					}
					leases <- lease
				}
			}()
		}
		ran := map[string]int{}
		for range 20 {
			synctest.Wait()
			if n := len(leases); n != min(2, 20-ran["w"]-ran["other"]) {
				t.Fatalf("%d tasks run at once, after %v", n, ran)
			}
			lease := <-leases
			ran[lease.Job.Worker]++
			f.Settle(lease, queue.Report{Outcome: succeeded("")})
		}
		if ran["w"] != 10 || ran["other"] != 10 {
			t.Fatalf("ran %v", ran)
		}
	})
}

func TestTakeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		slot := f.Slot("w")
		if _, err := slot.Take(ctx); err != context.DeadlineExceeded {
			t.Fatalf("take: %v", err)
		}
		f.submit(jobhost.Spec{})
		f.take(slot) // and the slot can be used again
	})
}

func TestListByState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		slot := f.Slot("w")
		f.submit(jobhost.Spec{ID: "done"})
		f.settle(f.take(slot), succeeded(""))
		f.submit(jobhost.Spec{ID: "dead"})
		f.settle(f.take(slot), failed(false))
		f.submit(jobhost.Spec{ID: "retrying"})
		f.settle(f.take(slot), failed(true))
		f.submit(jobhost.Spec{ID: "running"})
		f.take(slot)
		f.submit(jobhost.Spec{ID: "ready-1"})
		f.submit(jobhost.Spec{ID: "ready-2", Tasks: 3})
		f.submit(jobhost.Spec{ID: "later", Delay: time.Hour})
		f.submit(jobhost.Spec{ID: "gone"})
		if _, err := f.Cancel(t.Context(), "gone"); err != nil {
			t.Fatal(err)
		}
		want := map[jobhost.State]string{
			0:                 "gone later ready-2 ready-1 running retrying dead done",
			jobhost.Succeeded: "done", jobhost.Dead: "dead", jobhost.Cancelled: "gone", jobhost.Running: "running",
			jobhost.Retrying: "retrying", jobhost.Scheduled: "later", jobhost.Ready: "ready-2 ready-1", jobhost.Held: "",
		}
		for state, ids := range want {
			for _, limit := range []int{1, 2, 50} { // in pages of each size
				var got []string
				filter := jobhost.Filter{State: state, Limit: limit}
				for {
					page, err := f.Jobs(t.Context(), filter)
					if err != nil {
						t.Fatal(err)
					}
					for _, job := range page.Jobs {
						got = append(got, job.ID)
						if state != 0 && job.State != state {
							t.Errorf("%s is %v in a list of %v", job.ID, job.State, state)
						}
					}
					if filter.Cursor = page.Next; page.Next == "" {
						break
					}
				}
				if strings.Join(got, " ") != ids {
					t.Errorf("%v in pages of %d: %v, want %s", state, limit, got, ids)
				}
			}
		}
	})
}

func TestTasksOfAMissingWorkerAreHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		id := f.submit(jobhost.Spec{})
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		g := reopen(t, f.store, func(c *queue.Config) { c.Workers[0].Name = "another" })
		if job := g.job(id); job.State != jobhost.Held {
			t.Fatalf("job is %v", job.State)
		}
		why, err := g.Why(t.Context(), id)
		if err != nil || why.Code != "no_worker" || !strings.Contains(why.Reason, `"w"`) {
			t.Fatalf("why: %+v, %v", why, err)
		}
		page, err := g.Jobs(t.Context(), jobhost.Filter{State: jobhost.Held})
		if err != nil || len(page.Jobs) != 1 {
			t.Fatalf("held: %+v, %v", page, err)
		}
	})
}

func TestWhyHasAnAnswerForEachState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		slot := f.Slot("w")
		ask := func(id string) string {
			t.Helper()
			why, err := f.Why(t.Context(), id)
			if err != nil || why.Reason == "" {
				t.Fatalf("why %s: %+v, %v", id, why, err)
			}
			return why.Code
		}
		id := f.submit(jobhost.Spec{Delay: time.Minute, MaxAttempts: 2})
		got := []string{ask(id)}
		lease := f.take(slot)
		got = append(got, ask(id))
		waiting := f.submit(jobhost.Spec{})
		got = append(got, ask(waiting))
		f.settle(lease, failed(true))
		got = append(got, ask(id))
		if _, err := f.Cancel(t.Context(), waiting); err != nil {
			t.Fatal(err)
		}
		got = append(got, ask(waiting))
		f.settle(f.take(slot), failed(true))
		got = append(got, ask(id))
		want := []string{"scheduled", "running", "no_slot", "retry", "cancelled", "dead"}
		if !slices.Equal(got, want) {
			t.Fatalf("reasons %v, want %v", got, want)
		}
	})
}
