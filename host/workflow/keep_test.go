package workflow_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/workflow"
)

// failing is a workflow that leaves dead letters behind.
func failing(n int) *jobhost.Workflow {
	w := &jobhost.Workflow{Name: "failing"}
	for i := range n {
		w.Steps = append(w.Steps, jobhost.Step{Name: fmt.Sprint("s", i), Worker: "w", Entry: "fail", OnError: jobhost.ContinueWorkflow})
	}
	return w
}

// Dead letters of steps stay as long as their workflows, and those of other jobs have their bound
// all the same.
func TestDeadStepsStay(t *testing.T) { eachStore(t, testDeadStepsStay) }

func testDeadStepsStay(t *testing.T, open opener) {
	ended := make(chan string, 100)
	s := newStoreSite(t, open, plant{workers: []string{"w"}, retention: jobhost.Retention{MaxEntries: 2}, work: obedient, more: func(e jobhost.Event) {
		if e.Kind == jobhost.EventEnded {
			ended <- e.Job
		}
	}})
	const steps = 80 // of which one eviction doesn't look at all
	id := s.start(jobhost.WorkflowStart{Definition: failing(steps)})
	s.mustAwait(id)
	for range steps {
		<-ended
	}
	for i := range 40 {
		r, err := s.q.Submit(t.Context(), jobhost.Spec{ID: fmt.Sprint("plain", i), Worker: "w", Entry: "fail"})
		if err != nil {
			t.Fatal(err)
		}
		for got := ""; got != r.ID; got = <-ended {
		}
	}
	page, err := s.q.Dead(t.Context(), jobhost.DeadFilter{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	plain := 0
	for i := range page.Letters {
		if page.Letters[i].Job[:5] == "plain" {
			plain++
		}
	}
	if of := len(page.Letters) - plain; of != steps || plain > 6 {
		t.Errorf("%d letters are of steps, of %d, and %d of others", of, steps, plain)
	}
}

// Only the removal of a workflow removes its jobs.
func TestJobsOfStepsStay(t *testing.T) { eachStore(t, testJobsOfStepsStay) }

func testJobsOfStepsStay(t *testing.T, open opener) {
	brief := jobhost.Retention{Succeeded: time.Millisecond, Dead: time.Millisecond, Cancelled: time.Millisecond}
	s := newStoreSite(t, open, plant{
		workers: []string{"w"}, retention: brief, work: obedient,
		config: workflow.Config{Retention: jobhost.WorkflowRetention{Completed: time.Hour}},
	})
	id := s.start(jobhost.WorkflowStart{Definition: failing(3)})
	s.mustAwait(id)
	later := record.MillisOf(s.q.Now())
	s.tidyAll(later + 60_000)
	if err := s.q.Delete(t.Context(), id+".s0.1"); jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Errorf("job rm: %v", err)
	}
	done, err := s.q.ChangeDead(t.Context(), jobhost.DeadChange{Action: jobhost.DeadDelete, Filter: jobhost.DeadFilter{Worker: "w"}})
	if err != nil || done.Matched != 3 || done.Changed != 0 {
		t.Errorf("dead rm: %+v, %v", done, err)
	}
	for i := range 3 {
		if _, err := s.q.Job(t.Context(), fmt.Sprintf("%s.s%d.1", id, i)); err != nil {
			t.Error(err)
		}
	}
	s.tidyAll(later + 2*3_600_000)
	if left := s.rows(t); left["job"]+left["task"]+left["workflow"]+left["workflow_job"]+left["workflow_step"]+left["workflow_data"]+left["definition"]+left["dead"] > 0 {
		t.Errorf("left are %v", left)
	}
}

// A workflow that goes on is not removed at the time that it would have been.
func TestResumedStays(t *testing.T) { eachStore(t, testResumedStays) }

func testResumedStays(t *testing.T, open opener) {
	s := newStoreSite(t, open, plant{
		workers: []string{"w"}, work: func(s *site, l *queue.Lease) (jobhost.Outcome, bool) {
			if l.Token > 0 {
				return succeed("1")
			}
			return obedient(s, l)
		},
		config: workflow.Config{Retention: jobhost.WorkflowRetention{Failed: time.Hour}},
	})
	id := s.start(jobhost.WorkflowStart{Definition: &jobhost.Workflow{Name: "x", Steps: []jobhost.Step{
		{Name: "a", Worker: "w", Entry: "fail"}, {Name: "b", Signal: "go", Needs: []string{"a"}},
	}}})
	if run := s.mustAwait(id); run.Status != jobhost.WorkflowFailed {
		t.Fatal(statuses(&run))
	}
	if _, err := s.q.Retry(t.Context(), id+".a.1"); err != nil {
		t.Fatal(err)
	}
	s.tidyAll(record.MillisOf(s.q.Now()) + 2*3_600_000)
	if err := s.e.SignalWorkflow(t.Context(), id, jobhost.WorkflowSignal{Name: "go", Payload: []byte("7")}); err != nil {
		t.Fatal(err)
	}
	if run := s.mustAwait(id); run.Status != jobhost.WorkflowCompleted || string(run.Output) != "7" {
		t.Error(statuses(&run), string(run.Output))
	}
}

// However many start at one time, no more than may be are open.
func TestMostOpen(t *testing.T) { eachStore(t, testMostOpen) }

func testMostOpen(t *testing.T, open opener) {
	const most = 5
	s := newStoreSite(t, open, plant{workers: []string{"w"}, work: obedient, config: workflow.Config{MaxOpen: most}})
	w := &jobhost.Workflow{Name: "x", Steps: []jobhost.Step{{Name: "a", Signal: "go"}}}
	if err := s.e.CheckWorkflow(t.Context(), *w); err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			<-gate
			_, err := s.e.StartWorkflow(t.Context(), jobhost.WorkflowStart{Definition: w})
			if err != nil && jobhost.CodeOf(err) != jobhost.CodeExhausted {
				t.Error(err)
			}
		})
	}
	close(gate)
	all.Wait()
	if n := s.e.OpenCount(); n > most || n == 0 {
		t.Errorf("%d workflows are open, of %d", n, most)
	}
}
