package effect_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/effect"
	"github.com/jobhost/jobhost/host/queue"
)

func child(id string) jobhost.Spec { return jobhost.Spec{Worker: "w", ID: id} }

// TestChildTakesItsPlace: the queue of a child's worker has no room that an
// attempt counts on, until that has failed.
func TestChildTakesItsPlace(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a, lease := f.start()
	for range 2 {
		_, err := a.Submit(jobhost.Spec{Worker: "small"}, false)
		f.wantCode("room", err, "", none)
	}
	_, err := a.Submit(jobhost.Spec{Worker: "small"}, false)
	f.wantCode("no room", err, jobhost.CodeExhausted, effect.LimitQueue)
	_, err = a.Submit(jobhost.Spec{Worker: "small"}, true)
	f.wantCode("no room now", err, jobhost.CodeExhausted, effect.LimitQueue)
	_, err = f.Submit(t.Context(), jobhost.Spec{Worker: "small"})
	f.wantCode("no room for others", err, jobhost.CodeExhausted, none)
	f.settle(a, lease, jobhost.OutcomeFailed)
	for range 2 {
		_, err = f.Submit(t.Context(), jobhost.Spec{Worker: "small"})
		f.wantCode("room again", err, "", none)
	}
}

// TestChildIDs: names follow from the task, and from what was submitted before.
func TestChildIDs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.submit(jobhost.Spec{Tasks: 2, MaxAttempts: 2})
	ids := map[string]bool{}
	for range 4 { // two attempts of each task
		a, lease := f.begin()
		for range 2 {
			id, err := a.Submit(jobhost.Spec{Worker: "small"}, false)
			if err != nil || jobhost.CheckID(id) != nil {
				t.Fatalf("id %q, %v", id, err)
			}
			ids[id] = true
		}
		f.settle(a, lease, jobhost.OutcomeFailed)
	}
	if len(ids) != 4 {
		t.Errorf("two attempts of two tasks with two children each have named %d: %v", len(ids), ids)
	}
	a, lease := f.start()
	id, err := a.Submit(jobhost.Spec{Worker: "small"}, false)
	if err != nil || ids[id] {
		t.Errorf("another job's child is %s, %v", id, err)
	}
	f.settle(a, lease, jobhost.OutcomeSucceeded)
}

// TestSameID: what an attempt wants twice it gets once.
func TestSameID(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a, lease := f.start()
	for range 2 {
		if id, err := a.Submit(child("mine"), false); id != "mine" || err != nil {
			t.Fatalf("got %s, %v", id, err)
		}
	}
	other := child("mine")
	other.Payload = []byte("something else")
	_, err := a.Submit(other, false)
	f.wantCode("other content", err, jobhost.CodeConflict, none)
	_, err = a.Submit(child("mine"), true)
	f.wantCode("now", err, jobhost.CodeConflict, none)
	if job := f.settle(a, lease, jobhost.OutcomeSucceeded); job.State != jobhost.Succeeded {
		t.Fatalf("the job is %v: %+v", job.State, job.Failures)
	}
	page, err := f.Jobs(t.Context(), jobhost.Filter{Parent: lease.Job.ID})
	if err != nil || len(page.Jobs) != 1 || page.Jobs[0].ID != "mine" {
		t.Errorf("the children are %+v, %v", page.Jobs, err)
	}
	if n := f.Stats("w").Ready; n[jobhost.Normal.Level()] != 1 {
		t.Errorf("%v tasks are ready, want one", n)
	}
}

// TestTooManyChildren: a job may submit so many jobs, in all its attempts together.
func TestTooManyChildren(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a, lease := f.start()
	for i := range jobhost.MaxChildren {
		_, err := a.Submit(child(fmt.Sprint("child-", i)), i%100 == 0)
		f.wantCode("a child", err, "", none)
	}
	_, err := a.Submit(child("more"), false)
	f.wantCode("one more", err, jobhost.CodeExhausted, effect.LimitChildren)
	_, err = a.Submit(child("more"), true)
	f.settle(a, lease, jobhost.OutcomeFailed)
	if err != nil { // those that wait for success don't count before it
		t.Errorf("one more now: %v", err)
	}
	page, err := f.Jobs(t.Context(), jobhost.Filter{Parent: lease.Job.ID, Limit: 100})
	if err != nil || len(page.Jobs) != 11 {
		t.Errorf("there are %d children, %v; want 11", len(page.Jobs), err)
	}
}

// TestChildrenOfACancelledJob: an attempt whose job has been cancelled has no
// effects, and gives back the places of its children.
func TestChildrenOfACancelledJob(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a, lease := f.start()
	for range 2 {
		if _, err := a.Submit(jobhost.Spec{Worker: "small"}, false); err != nil {
			t.Fatal(err)
		}
	}
	f.wantCode("set", a.Set([]byte("a"), nil, 0), "", none)
	if _, err := f.Cancel(t.Context(), lease.Job.ID); err != nil {
		t.Fatal(err)
	}
	f.settle(a, lease, jobhost.OutcomeSucceeded)
	f.want("a", "-") // a commit after the settlement's, so that is through
	if _, err := f.SubmitBatch(t.Context(), []jobhost.Spec{{Worker: "small"}, {Worker: "small"}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := f.Stats("small").Ready[jobhost.Normal.Level()]; n != 2 {
		t.Errorf("%d tasks are ready, want those that were submitted", n)
	}
}

// TestChildrenWhileStopping: what an attempt submits after admission has ended
// is kept for the next start.
func TestChildrenWhileStopping(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a, lease := f.start()
	f.Stop()
	if _, err := f.Submit(t.Context(), child("outside")); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("a submit from outside: %v", err)
	}
	_, err := a.Submit(child("later"), false)
	f.wantCode("with success", err, "", none)
	_, err = a.Submit(child("now"), true)
	f.wantCode("now", err, "", none)
	f.settle(a, lease, jobhost.OutcomeSucceeded)
	if page, err := f.Jobs(t.Context(), jobhost.Filter{Parent: lease.Job.ID}); err != nil || len(page.Jobs) != 2 {
		t.Errorf("the children are %+v, %v", page.Jobs, err)
	}
}

// TestHammer lets attempts compete for keys and children from many slots; the
// results add up, whichever had to retry.
func TestHammer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const jobs, slots = 60, 6
	for range jobs {
		f.submit(jobhost.Spec{MaxAttempts: 1000})
	}
	var group sync.WaitGroup
	var mu sync.Mutex         // protects done
	done := map[string]bool{} // jobs: another slot may have taken one again, and both see its end
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range slots {
		group.Go(func() {
			slot := f.Slot("w")
			for {
				lease, err := slot.Take(ctx)
				if err != nil {
					return
				}
				attempt(t, f, lease)
				mu.Lock()
				if f.settled(lease).State == jobhost.Succeeded {
					if done[lease.Job.ID] = true; len(done) == jobs {
						stop()
					}
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	f.want("sum", fmt.Sprint(jobs))
	_, value, err := f.KeyValue(t.Context(), "w", "log")
	if err != nil || len(value) != jobs {
		t.Errorf("the log has %d entries, %v; want %d", len(value), err, jobs)
	}
}

// attempt appends to a key that others append to, and counts.
func attempt(t *testing.T, f *fixture, lease *queue.Lease) {
	a := effect.New(effect.Config{Queue: f.Queue, Lease: lease})
	value, version, err := a.Get([]byte("log"))
	if jobhost.CodeOf(err) == jobhost.CodeNotFound {
		err = nil
	}
	if err == nil {
		err = a.CompareAndSet([]byte("log"), version, append([]byte("x"), value...))
	}
	if err == nil {
		_, err = a.Add([]byte("sum"), 1)
	}
	if err != nil {
		t.Error(err)
	}
	f.Settle(lease, queue.Report{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeSucceeded}, Effects: a.Take()})
}

// TestOwnHasChildren: a job of the host's own is refused where it could not have
// children itself, such as the response to its request.
func TestOwnHasChildren(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a, lease := f.start()
	for depth := range jobhost.MaxDepth {
		_, err := a.SubmitOwn(jobhost.Spec{Worker: jobhost.HTTPWorker})
		if got, want := err == nil, depth+2 <= jobhost.MaxDepth; got != want {
			t.Errorf("%d generations down it is taken: %v, %v", depth, got, err)
		}
		f.settle(a, lease, jobhost.OutcomeFailed)
		a, lease = f.begin()
		if _, err := a.Submit(jobhost.Spec{Worker: "w"}, false); err != nil {
			t.Fatal(err)
		}
		f.settle(a, lease, jobhost.OutcomeSucceeded)
		a, lease = f.begin()
	}
}

// TestRefusedHasNoNumber: a job that was refused takes no name, so that another
// attempt, for which there is room, gives those that follow the same ones.
func TestRefusedHasNoNumber(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a, lease := f.start()
	for _, now := range []bool{true, false} {
		if _, err := a.Submit(jobhost.Spec{Worker: "nobody"}, now); err == nil {
			t.Fatal("a job for nobody was taken")
		}
	}
	first, err := a.Submit(jobhost.Spec{Worker: "w"}, true)
	if want := queue.ChildID(lease.Job, lease.Index, 1); err != nil || first != want {
		t.Errorf("the first job is %s, want %s, %v", first, want, err)
	}
	f.settle(a, lease, jobhost.OutcomeSucceeded)
}
