package workflow_test

import (
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
)

// A workflow that can't continue fails once, whatever comes later, and requests get an error.
func TestBrokenWorkflows(t *testing.T) { eachStore(t, testBrokenWorkflows) }

func testBrokenWorkflows(t *testing.T, open opener) {
	type damage struct{ sql, code string }
	for name, whole := range map[string]struct{ sqlite, postgres damage }{
		"record": {
			damage{"UPDATE workflow SET record=x'07', sum=NULL", jobhost.FailInternal}, // of a time without checksums
			damage{`UPDATE workflow SET record='\x07'`, jobhost.FailInternal},
		},
		"damaged record": {
			damage{"UPDATE workflow SET record=x'07'", jobhost.FailDamaged},
			damage{"UPDATE workflow SET ending='{'", jobhost.FailDamaged},
		},
		"definition": {
			damage{"DELETE FROM definition", jobhost.FailDamaged},
			damage{"DELETE FROM definition", jobhost.FailInternal},
		},
		"damaged definition": {
			damage{"UPDATE definition SET text=x'7b7d'", jobhost.FailDamaged},
			damage{`UPDATE definition SET text='\x7b7d'`, jobhost.FailInternal},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := open(t)
			p := plant{workers: []string{"w"}, work: obedient}
			s, err := newSite(t, on, p)
			if err != nil {
				t.Fatal(err)
			}
			id := s.start(jobhost.WorkflowStart{Definition: &jobhost.Workflow{Name: "x", Timeout: jobhost.Duration(1e12), Steps: []jobhost.Step{
				{Name: "a", Signal: "go"}, {Name: "b", Signal: "gone", OnError: jobhost.ContinueWorkflow},
			}}})
			s.close()
			broken := whole.postgres
			if on.sums {
				broken = whole.sqlite
			}
			on.exec(t, broken.sql)
			if s, err = newSite(t, on, p); err != nil {
				t.Fatal(err)
			}
			defer s.close()
			for range 3 {
				_, retried := s.e.RetryWorkflow(t.Context(), id, "")
				for what, err := range map[string]error{
					"signal": s.e.SignalWorkflow(t.Context(), id, jobhost.WorkflowSignal{Name: "go"}),
					"retry":  retried,
				} {
					if jobhost.CodeOf(err) != jobhost.CodeConflict {
						t.Errorf("%s of a broken workflow: %v", what, err)
					}
				}
			}
			run, err := s.await(id)
			if err != nil || run.Status != jobhost.WorkflowFailed || run.Failure == nil || run.Failure.Code != broken.code {
				t.Errorf("%+v, %v", run, err)
			}
			if n := s.told(id); n != 1 {
				t.Errorf("it has ended %d times", n)
			}
			if err := s.e.DeleteWorkflow(t.Context(), id); err != nil {
				t.Error(err)
			}
			if counts, err := on.Counts(t.Context()); err != nil || counts[jobhost.WorkflowWorker][0] != 0 {
				t.Errorf("%v, %v", counts, err)
			}
		})
	}
}

// A step whose job can't be read any more fails, and the workflow goes on as it says. A
// timer that can't be read is due in its time. Only checksums of rows tell that options are damaged.
func TestStepWithDamagedOptions(t *testing.T) {
	t.Parallel()
	later := &jobhost.StepRetry{MaxAttempts: 3, Backoff: "constant", Initial: jobhost.Duration(time.Second), Max: jobhost.Duration(time.Second)}
	for name, tt := range map[string]struct {
		steps []jobhost.Step
		want  string
		code  string
	}{
		"a step": {[]jobhost.Step{{Name: "a", Worker: "w", Retry: later}}, "failed a=failed", jobhost.FailDamaged},
		"a step of several tasks": {
			[]jobhost.Step{{Name: "many", Worker: "w", Tasks: 3, Retry: later}, {Name: "a", Signal: "never"}},
			"failed many=failed a=cancelled", jobhost.FailDamaged,
		},
		"a timer": {[]jobhost.Step{{Name: "a", Sleep: jobhost.Duration(time.Second)}}, "completed a=completed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := openSQLite(t)
			p := plant{workers: []string{"w"}}
			tried := make(chan struct{}, 16)
			p.work = func(*site, *queue.Lease) (jobhost.Outcome, bool) {
				tried <- struct{}{}
				return fail(true)
			}
			s, err := newSite(t, on, p)
			if err != nil {
				t.Fatal(err)
			}
			id := s.start(jobhost.WorkflowStart{Definition: &jobhost.Workflow{Name: "x", Steps: tt.steps}})
			if tt.steps[0].Worker != "" {
				<-tried
			}
			s.close()
			on.exec(t, "UPDATE job SET options='{}'")
			if s, err = newSite(t, on, p); err != nil {
				t.Fatal(err)
			}
			defer s.close()
			run, err := s.await(id)
			if err != nil || statuses(&run) != tt.want || (run.Failure == nil) != (tt.code == "") || run.Failure != nil && run.Failure.Code != tt.code {
				t.Errorf("%s, %+v, %v", statuses(&run), run.Failure, err)
			}
		})
	}
}

// Ids of jobs of a workflow may be taken by jobs of a host from before there were workflows.
func TestTakenIDs(t *testing.T) { eachStore(t, testTakenIDs) }

func testTakenIDs(t *testing.T, open opener) {
	held := make(chan struct{})
	s := newStoreSite(t, open, plant{workers: []string{"w"}, work: func(s *site, l *queue.Lease) (jobhost.Outcome, bool) {
		if l.Job.Origin == nil {
			<-held
			return succeed("")
		}
		return obedient(s, l)
	}})
	t.Cleanup(func() { close(held) })
	var foreign []string
	for _, id := range []string{"wf-jobs.a.1", "wf-jobs.b.1", "wf-timer.nap.1.wake"} {
		if res := s.commit(&record.Submit{Job: s.q.NewJob(&jobhost.Spec{ID: id, Worker: "w"})}); res.Err != nil {
			t.Fatal(res.Err)
		}
		foreign = append(foreign, id)
	}
	jobs := s.mustAwait(s.start(jobhost.WorkflowStart{ID: "wf-jobs", Definition: &jobhost.Workflow{Name: "x", Steps: []jobhost.Step{
		{Name: "a", Worker: "w"}, {Name: "b", Worker: "w"},
	}}}))
	if got := statuses(&jobs); got != "failed a=failed b=cancelled" {
		t.Error(got)
	}
	timer := s.mustAwait(s.start(jobhost.WorkflowStart{ID: "wf-timer", Definition: &jobhost.Workflow{Name: "x", Steps: []jobhost.Step{
		{Name: "a", Worker: "w"}, {Name: "nap", Sleep: 1, Needs: []string{"a"}},
	}}}))
	if timer.Status != jobhost.WorkflowFailed || timer.Steps[0].Status != jobhost.StepCompleted {
		t.Error(statuses(&timer))
	}
	for _, id := range foreign {
		if job, err := s.q.Job(t.Context(), id); err != nil || job.State.Ended() {
			t.Errorf("job %s, which is of nobody: %v, %v", id, job.State, err)
		}
	}
}
