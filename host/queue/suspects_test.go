package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
)

// leader is a host that leads; several lead one after the other, over one store.
type leader struct {
	*fixture
	store *sharedStore
}

// leaders runs a test with a store in memory, and what begins the next term.
func leaders(t *testing.T, test func(t *testing.T, next func() *leader)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := queuetest.NewMemory()
		defer memory.Close()
		test(t, func() *leader {
			store := newShared(memory, 0)
			r := &leader{reopenAny(t, store), store}
			if _, err := r.SettleCrashed(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			return r
		})
	})
}

// die ends the host at once: nothing that it commits from now on goes in.
func (r *leader) die() {
	r.store.end()
	r.Stop()
}

// takes takes so many tasks, each in a slot of its own.
func (r *leader) takes(n int) map[record.Key]*queue.Lease {
	r.t.Helper()
	leases := map[record.Key]*queue.Lease{}
	for range n {
		lease := r.take(r.Slot("w"))
		leases[lease.Key] = lease
	}
	return leases
}

// attempts returns how many attempts of the task of a job count.
func (r *leader) attempts(id string) int { return r.job(id).Tasks[0].Attempt }

// A host is killed while it runs many tasks. Nothing counts, and they run apart in the next term; what was not under way
// doesn't.
func TestKilledLeaderCostsNoAttempt(t *testing.T) {
	leaders(t, func(t *testing.T, next func() *leader) {
		r := next()
		var ids []string
		for range 200 {
			ids = append(ids, r.submit(jobhost.Spec{MaxAttempts: 1}))
		}
		r.takes(200)
		time.Sleep(2 * time.Second)
		waiting := r.submit(jobhost.Spec{})
		r.die()
		r = next()
		for _, lease := range r.takes(201) {
			if suspect := lease.Job.ID != waiting; lease.Suspect != suspect || lease.Number() != 1 {
				t.Fatalf("%s, attempt %d, suspect %t", lease.Job.ID, lease.Number(), lease.Suspect)
			}
			r.settle(lease, succeeded(""))
		}
		for _, id := range ids {
			if job := r.job(id); job.State != jobhost.Succeeded || job.Tasks[0].Attempt != 1 {
				t.Fatalf("%+v", job)
			}
		}
	})
}

// A host that stops in good order leaves no suspects.
func TestStoppedLeaderLeavesNoSuspects(t *testing.T) {
	leaders(t, func(t *testing.T, next func() *leader) {
		r := next()
		r.submit(jobhost.Spec{})
		lease := r.take(r.Slot("w"))
		time.Sleep(2 * time.Second)
		r.settle(lease, jobhost.Outcome{Kind: jobhost.OutcomeReturned})
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.store.end()
		r = next()
		if lease := r.take(r.Slot("w")); lease.Suspect || lease.Number() != 1 {
			t.Errorf("attempt %d, suspect %t", lease.Number(), lease.Suspect)
		}
	})
}

// A task that ends each host within a moment is in no note of the first one. The second one notes it before it begins,
// and from the third death on each counts, until it is a dead letter; a task that runs beside it loses nothing.
func TestTaskThatEndsOneLeaderAfterTheOther(t *testing.T) {
	leaders(t, func(t *testing.T, next func() *leader) {
		r := next()
		evil := r.submit(jobhost.Spec{MaxAttempts: 3})
		good := r.submit(jobhost.Spec{MaxAttempts: 1})
		for death := 1; ; death++ {
			if r.job(evil).State == jobhost.Dead {
				if death != 6 {
					t.Errorf("it was buried after %d deaths", death-1)
				}
				break
			}
			lease := r.takes(1)
			for _, l := range lease {
				if want := death > 2; l.Job.ID != evil || l.Suspect != want {
					t.Fatalf("term %d runs %s first, suspect %t", death, l.Job.ID, l.Suspect)
				}
			}
			r.die()
			r = next()
		}
		if f := r.job(evil).Failures; len(f) != 3 || f[2].Code != jobhost.FailHostCrash {
			t.Errorf("%+v", f)
		}
		if n := r.attempts(good); n != 0 {
			t.Errorf("the other has lost %d attempts", n)
		}
		lease := r.take(r.Slot("w"))
		if lease.Job.ID != good || lease.Suspect {
			t.Errorf("%s is next, suspect %t", lease.Job.ID, lease.Suspect)
		}
	})
}

// Of many suspects that were under way at a death none can be told to be the cause. So fewer of them run at one time
// after each, until one is alone: only for that it counts.
func TestManySuspectsRunAFewAtATime(t *testing.T) {
	leaders(t, func(t *testing.T, next func() *leader) {
		r := next()
		for i := range 20 {
			r.submit(jobhost.Spec{ID: fmt.Sprint(i)})
		}
		r.takes(20)
		open := 20
		for _, most := range []int{20, 5, 1} {
			time.Sleep(2 * time.Second)
			r.die()
			r = next()
			if counted := r.counted(20); counted != 0 {
				t.Fatalf("%d attempts count", counted)
			}
			began := r.takeAll(20)
			time.Sleep(30 * time.Second)
			if len(began) != most {
				t.Fatalf("%d run at one time, want %d", len(began), most)
			}
			if n := r.suspects(20); n != open-most {
				t.Errorf("%d jobs are said to wait as suspects, want %d", n, open-most)
			}
			if most < 20 {
				r.settle(<-began, succeeded(""))
				open--
				time.Sleep(2 * time.Second)
				if len(began) != most {
					t.Errorf("%d run at one time when one has ended, want %d", len(began), most)
				}
			}
		}
		r.die()
		if counted := next().counted(20); counted != 1 {
			t.Errorf("%d attempts count", counted)
		}
	})
}

// counted is how many of so many jobs have lost an attempt.
func (r *leader) counted(jobs int) (n int) {
	for i := range jobs {
		if job := r.job(fmt.Sprint(i)); job.State != jobhost.Succeeded {
			n += job.Tasks[0].Attempt
		}
	}
	return n
}

// suspects is how many of so many jobs wait for others that may have ended hosts.
func (r *leader) suspects(jobs int) (n int) {
	r.t.Helper()
	for i := range jobs {
		why, err := r.Why(r.t.Context(), fmt.Sprint(i))
		if err != nil {
			r.t.Fatal(err)
		}
		if why.Code == "suspect" {
			n++
		}
	}
	return n
}

// takeAll lets so many slots wait for a task, and returns what they get.
func (r *leader) takeAll(slots int) <-chan *queue.Lease {
	began := make(chan *queue.Lease, slots)
	for range slots {
		slot := r.Slot("w")
		go func() {
			if lease, err := slot.Take(r.t.Context()); err == nil {
				began <- lease
			}
		}()
	}
	return began
}

// What runs is noted once a second and not for each attempt, and an idle host notes nothing.
func TestWhatRunsIsNotedSparingly(t *testing.T) {
	leaders(t, func(t *testing.T, next func() *leader) {
		r := next()
		slot := r.Slot("w")
		commits := r.store.commits.Load()
		for range 100 {
			r.submit(jobhost.Spec{})
			r.settle(r.take(slot), succeeded(""))
			time.Sleep(10 * time.Millisecond)
		}
		if n := r.store.commits.Load() - commits - 200; n > 2 {
			t.Errorf("%d commits besides those of the jobs", n)
		}
		time.Sleep(2 * time.Second)
		commits = r.store.commits.Load()
		time.Sleep(time.Minute)
		if n := r.store.commits.Load() - commits; n != 0 {
			t.Errorf("an idle host has committed %d times", n)
		}
	})
}

// Slots, the watch, cancels and questions meet at the suspects.
func TestSuspectsHammer(t *testing.T) {
	leaders(t, func(t *testing.T, next func() *leader) {
		r := next()
		const jobs, slots = 300, 12
		for i := range jobs {
			r.submit(jobhost.Spec{ID: fmt.Sprint(i), MaxAttempts: 100})
		}
		for range 2 { // so that there are suspects of several deaths
			r.takes(40)
			time.Sleep(2 * time.Second)
			r.die()
			r = next()
		}
		var busy sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for n := range slots {
			slot := r.Slot("w")
			busy.Go(func() {
				outcomes := []jobhost.Outcome{succeeded(""), {Kind: jobhost.OutcomeReturned}, {Kind: jobhost.OutcomeSnoozed, Snooze: time.Second}, failed(true)}
				for i := n; ; i++ {
					lease, err := slot.Take(ctx)
					if err != nil {
						return
					}
					time.Sleep(time.Duration(i%7) * 100 * time.Millisecond)
					r.Settle(lease, queue.Report{Outcome: outcomes[i%len(outcomes)]})
				}
			})
		}
		for i := range jobs {
			busy.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				if _, err := r.Why(t.Context(), fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					_, _ = r.Cancel(t.Context(), fmt.Sprint(i))
				}
			})
		}
		time.Sleep(10 * time.Minute)
		for i := range jobs {
			if job := r.job(fmt.Sprint(i)); job.State != jobhost.Succeeded && job.State != jobhost.Cancelled {
				t.Errorf("job %d is %v", i, job.State)
			}
		}
		cancel()
		busy.Wait()
	})
}
