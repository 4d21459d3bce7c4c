package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
)

// stepJob is a job as the host makes it for a step.
func stepJob(id string, n int, mod ...func(*record.JobSpec)) *record.JobSpec {
	now := record.MillisOf(time.Now())
	job := &record.JobSpec{
		ID: id, Worker: "w", Tasks: n, Priority: jobhost.Normal, MaxAttempts: 3, Timeout: time.Minute,
		CreatedAt: now, ReadyAt: now, Digest: [16]byte{1},
	}
	for _, m := range mod {
		m(job)
	}
	return job
}

func (f *fixture) add(job *record.JobSpec) {
	f.t.Helper()
	if err := f.Add(f.t.Context(), job); err != nil {
		f.t.Fatal(err)
	}
}

// restart closes the queue and makes another one over its store.
func (f *fixture) restart(change ...func(*queue.Config)) *fixture {
	f.t.Helper()
	if err := f.Close(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	return reopen(f.t, f.store, change...)
}

// runners takes tasks with n slots for as long as the test runs; what they have
// taken comes out of the channel.
func (f *fixture) runners(n int) <-chan *queue.Lease {
	leases := make(chan *queue.Lease, 10_000)
	for range n {
		slot := f.Slot("w")
		go func() {
			for {
				lease, err := slot.Take(context.Background())
				if err != nil {
					return
				}
				leases <- lease
			}
		}()
	}
	return leases
}

// Each task has its item: of a job that was just submitted, when it is tried
// again, after a restart, with a cache that holds few.
func TestItemsReachTheirTasks(t *testing.T) {
	t.Parallel()
	for _, resident := range []int64{0, 4096} {
		t.Run(fmt.Sprint("resident=", resident), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const n = 300
				cfg := func(c *queue.Config) { c.ResidentBytes = resident }
				f := setup(t, cfg)
				item := func(i int) []byte { return fmt.Appendf(nil, "item %d", i) }
				f.add(stepJob("a", n, func(j *record.JobSpec) {
					for i := range n {
						j.Items = append(j.Items, item(i))
					}
					j.Items[7] = nil
				}))
				f.submit(jobhost.Spec{ID: "b", Payload: []byte("whole")})
				if size := f.job("a").PayloadSize; size < 2000 {
					t.Errorf("the items have %d bytes together", size)
				}
				_, err := f.OpenPayload(t.Context(), "a")
				wantCode(t, err, jobhost.CodeNotFound)
				check := func(lease *queue.Lease) {
					want := item(lease.Index)
					switch {
					case lease.Job.ID == "b":
						want = []byte("whole")
					case lease.Index == 7:
						want = nil
					}
					if !bytes.Equal(lease.Input(), want) || lease.Job.Items != nil {
						t.Fatalf("task %d of %s has %q, want %q", lease.Index, lease.Job.ID, lease.Input(), want)
					}
				}
				slot := f.Slot("w")
				for i := range 100 {
					lease := f.take(slot)
					check(lease)
					if i%2 == 0 {
						f.settle(lease, failed(true))
					} else {
						f.settle(lease, succeeded(""))
					}
				}
				f = f.restart(cfg)
				slot = f.Slot("w")
				for range n + 1 - 50 {
					lease := f.take(slot)
					check(lease)
					f.settle(lease, succeeded(""))
				}
				if state := f.job("a").State; state != jobhost.Succeeded {
					t.Errorf("the job is %v", state)
				}
				if left := f.Resident(); left != 0 {
					t.Errorf("%d bytes are held of no task", left)
				}
			})
		})
	}
}

// A job's own policy decides when it is tried again, also after a restart.
func TestRetryOfJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.add(stepJob("a", 1, func(j *record.JobSpec) {
			j.MaxAttempts = 4
			j.Retry = &jobhost.RetryPolicy{MaxAttempts: 4, Backoff: jobhost.BackoffLinear, Initial: time.Minute, Increment: time.Hour, Max: 24 * time.Hour}
		}))
		began := time.Now()
		for i, want := range []time.Duration{0, time.Minute, 2*time.Minute + time.Hour, 3*time.Minute + 3*time.Hour} {
			lease := f.take(f.Slot("w"))
			if waited := time.Since(began).Round(time.Second); waited != want {
				t.Errorf("attempt %d was after %v, want %v", i+1, waited, want)
			}
			f.settle(lease, failed(true))
			if i == 1 {
				f = f.restart()
			}
		}
		if job := f.job("a"); job.State != jobhost.Dead {
			t.Errorf("the job is %v after its last attempt", job.State)
		}
	})
}

// No more tasks of a job run than may, and others don't wait for them; what
// waits says why. After a restart it is the same.
func TestMaxParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.add(stepJob("few", 20, func(j *record.JobSpec) { j.MaxParallel = 3 }))
		f.add(stepJob("one", 5, func(j *record.JobSpec) { j.MaxParallel = 1 }))
		f.add(stepJob("all", 2, func(j *record.JobSpec) { j.MaxParallel = 2 }))
		f.submit(jobhost.Spec{ID: "other"})
		for range 2 {
			leases := f.runners(12)
			synctest.Wait()
			running := map[string]int{}
			for range len(leases) {
				running[(<-leases).Job.ID]++
			}
			if running["few"] != 3 || running["one"] != 1 || running["all"] != 2 || running["other"] != 1 {
				t.Fatalf("%v run", running)
			}
			if n := f.Stats("w").Counts(); n[jobhost.Held] != 21 || n[jobhost.Ready] != 0 {
				t.Errorf("the numbers are %v, want 21 held", n)
			}
			if state := f.job("few").Tasks[19].State; state != jobhost.Held {
				t.Errorf("the last task is %v", state)
			}
			f = f.restart()
		}
		for range 3 {
			f.take(f.Slot("w"))
		}
		f.add(stepJob("late", 3, func(j *record.JobSpec) { j.MaxParallel, j.Priority = 1, jobhost.Critical }))
		if lease := f.take(f.Slot("w")); lease.Job.ID != "late" {
			t.Fatalf("took a task of %s", lease.Job.ID)
		}
		if _, err := f.CancelTask(t.Context(), "late", 0); err != nil {
			t.Fatal(err)
		}
		why, err := f.Why(t.Context(), "late")
		if err != nil || why.State != jobhost.Held || why.Code != "max_parallel" || why.Ends == "" {
			t.Errorf("got %+v, %v", why, err)
		}
	})
}

// Many slots at once, retries and a restart in the middle: never too many of a job.
func TestMaxParallelUnderLoad(t *testing.T) {
	t.Parallel()
	const jobs, tasks, most = 4, 60, 3
	fast := func(c *queue.Config) {
		c.Workers[0].Retry = jobhost.RetryPolicy{MaxAttempts: 3, Backoff: jobhost.BackoffConstant}
	}
	f := setup(t, fast)
	for i := range jobs {
		f.add(stepJob(fmt.Sprint("j", i), tasks, func(j *record.JobSpec) { j.MaxParallel = most }))
	}
	f.add(stepJob("free", tasks, func(j *record.JobSpec) { j.MaxAttempts = 3 }))
	var (
		mu      sync.Mutex // protects running and ended
		running = map[string]int{}
		ended   int
	)
	count := func(id string, n int) int {
		mu.Lock()
		defer mu.Unlock()
		running[id] += n
		return running[id]
	}
	work := func(f *fixture, until int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var slots sync.WaitGroup
		for range 16 {
			slot := f.Slot("w")
			slots.Go(func() {
				for {
					lease, err := slot.Take(ctx)
					if err != nil {
						return
					}
					if n := count(lease.Job.ID, 1); n > most && lease.Job.ID != "free" {
						t.Errorf("%d tasks of %s run", n, lease.Job.ID)
					}
					outcome := succeeded("")
					if lease.Number() == 1 && lease.Index%5 == 0 {
						outcome = failed(true)
					}
					count(lease.Job.ID, -1)
					f.Settle(lease, queue.Report{Outcome: outcome})
					mu.Lock()
					if outcome.Kind == jobhost.OutcomeSucceeded {
						ended++
					}
					if ended >= until {
						cancel()
					}
					mu.Unlock()
				}
			})
		}
		slots.Wait()
	}
	work(f, (jobs+1)*tasks/2)
	f = f.restart(fast)
	work(f, (jobs+1)*tasks)
	if err := f.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		if job := f.job(fmt.Sprint("j", i)); job.State != jobhost.Succeeded {
			t.Errorf("job %d is %v", i, job.State)
		}
	}
	if left := f.Remains("w"); left != 0 {
		t.Errorf("the lane still knows of %d things", left)
	}
}
