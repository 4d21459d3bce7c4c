package workflow_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/workflow"
)

// obedient does what the entry of a task says.
func obedient(_ *site, l *queue.Lease) (jobhost.Outcome, bool) {
	if l.Job.Entry == "fail" {
		return fail(false)
	}
	return succeed(digest(l))
}

func (s *site) mustAwait(id string) jobhost.WorkflowRun {
	s.t.Helper()
	run, err := s.await(id)
	if err != nil {
		s.t.Fatal(err)
	}
	return run
}

func TestRemovalTakesChildrenAlong(t *testing.T) { eachStore(t, testRemovalTakesChildrenAlong) }

func testRemovalTakesChildrenAlong(t *testing.T, open opener) {
	s := newStoreSite(t, open, plant{workers: []string{"w", "other"}, defs: children(), work: obedient})
	id := s.start(jobhost.WorkflowStart{Workflow: "outer", Input: []byte("1")})
	s.mustAwait(id)
	page, err := s.e.Workflows(t.Context(), jobhost.WorkflowFilter{})
	if err != nil || len(page.Workflows) != 2 {
		t.Fatalf("%v, %v", page, err)
	}
	if err := s.e.DeleteWorkflow(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if page, err = s.e.Workflows(t.Context(), jobhost.WorkflowFilter{}); err != nil || len(page.Workflows) != 0 {
		t.Fatalf("%v, %v", page, err)
	}
}

// A job of a workflow that has ended can be revived. If the workflow is removed after that,
// the job's lane must be notified.
func TestRemovalCancelsWhatIsOpen(t *testing.T) { eachStore(t, testRemovalCancelsWhatIsOpen) }

func testRemovalCancelsWhatIsOpen(t *testing.T, open opener) {
	began, cancelled := make(chan struct{}), make(chan struct{})
	over, events := make(chan struct{}), make(chan jobhost.Event, 10)
	s := newStoreSite(t, open, plant{workers: []string{"w"}, work: func(s *site, l *queue.Lease) (jobhost.Outcome, bool) {
		if l.Job.Entry == "fail" && l.Token > 0 {
			l.OnCancel(sync.OnceFunc(func() { close(cancelled) }))
			close(began)
			select {
			case <-cancelled:
			case <-over:
			}
			return jobhost.Outcome{Kind: jobhost.OutcomeCancelled}, false
		}
		return obedient(s, l)
	}, more: func(e jobhost.Event) {
		if e.Kind == jobhost.EventCancelled {
			events <- e
		}
	}})
	t.Cleanup(func() { close(over) })
	id := s.start(jobhost.WorkflowStart{Definition: &jobhost.Workflow{Name: "x", Steps: []jobhost.Step{
		{Name: "a", Worker: "w", Entry: "fail", OnError: jobhost.ContinueWorkflow}, {Name: "b", Worker: "w", Needs: []string{"a"}},
	}}})
	s.mustAwait(id)
	if _, err := s.q.Retry(t.Context(), id+".a.1"); err != nil {
		t.Fatal(err)
	}
	<-began
	if err := s.e.DeleteWorkflow(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	select {
	case <-cancelled:
	case <-time.After(10 * time.Second):
		t.Fatal("the attempt is not told that its job is gone")
	}
	select {
	case e := <-events:
		if e.Job != id+".a.1" {
			t.Errorf("%v", e)
		}
	default:
		t.Error("nobody was told")
	}
	counts, err := s.store.Counts(t.Context())
	if err != nil || counts["w"] != (record.StatusCounts{}) {
		t.Errorf("%v, %v", counts, err)
	}
}

// A workflow that is a step goes on when it is retried, also when the one above has ended
// without it. That is not removed as long as it runs.
func TestRemovalWaitsForChildren(t *testing.T) { eachStore(t, testRemovalWaitsForChildren) }

func testRemovalWaitsForChildren(t *testing.T, open opener) {
	block := make(chan struct{})
	unblock := sync.OnceFunc(func() { close(block) })
	s := newStoreSite(t, open, plant{
		workers: []string{"w", "other"}, defs: children(), config: workflow.Config{Retention: jobhost.WorkflowRetention{Completed: 1}},
		work: func(s *site, l *queue.Lease) (jobhost.Outcome, bool) {
			if l.Job.Entry == "fail" && l.Job.ID[len(l.Job.ID)-1] == '2' {
				<-block
				return succeed("1")
			}
			return obedient(s, l)
		},
	})
	t.Cleanup(unblock)
	id := s.start(jobhost.WorkflowStart{Definition: &jobhost.Workflow{Name: "p", Steps: []jobhost.Step{
		{Name: "c", Workflow: "vain", OnError: jobhost.ContinueWorkflow}, {Name: "d", Worker: "w", Needs: []string{"c"}},
	}}})
	s.mustAwait(id)
	child := id + ".c.1"
	if _, err := s.e.RetryWorkflow(t.Context(), child, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.e.DeleteWorkflow(t.Context(), id); jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Errorf("removal while %s runs: %v", child, err)
	}
	tidy := &record.Tidy{At: record.MillisOf(s.q.Now()) + 60_000, Limit: 100}
	if res := s.commit(tidy); res.Err != nil || res.Next <= tidy.At {
		t.Errorf("%+v", res)
	}
	if run, err := s.e.Workflow(t.Context(), child); err != nil || run.Status != jobhost.WorkflowRunning {
		t.Errorf("%v, %v", run, err)
	}
	unblock()
	s.mustAwait(child)
	tidy.At += 10 * 60_000
	s.tidyAll(tidy.At)
	if _, err := s.e.Workflow(t.Context(), id); jobhost.CodeOf(err) != jobhost.CodeNotFound {
		t.Errorf("%v", err)
	}
}

// An id is free again when its workflow is gone, and not before.
func TestStartDuringRemoval(t *testing.T) { eachStore(t, testStartDuringRemoval) }

func testStartDuringRemoval(t *testing.T, open opener) {
	s := newStoreSite(t, open, plant{workers: []string{"w"}, work: obedient})
	start := jobhost.WorkflowStart{ID: "wf-again", Definition: &jobhost.Workflow{Name: "x", Steps: []jobhost.Step{
		{Name: "a", Worker: "w"}, {Name: "b", Worker: "w", Needs: []string{"a"}},
	}}}
	s.mustAwait(s.start(start))
	if res := s.commit(&record.DeleteWorkflow{ID: start.ID, At: 1, Limit: 1}); res.Err != nil || res.Next != 1 {
		t.Fatalf("%+v", res)
	}
	_, err := s.e.StartWorkflow(t.Context(), start)
	if code := jobhost.CodeOf(err); code != jobhost.CodeConflict {
		t.Errorf("start while it is being removed: %s, %v", code, err)
	}
	if err := s.e.DeleteWorkflow(t.Context(), start.ID); err != nil {
		t.Fatal(err)
	}
	s.mustAwait(s.start(start))
}
