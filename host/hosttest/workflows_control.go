package hosttest

import (
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

func approved(id, payload string) jobhost.WorkflowSignal {
	return jobhost.WorkflowSignal{Name: "approved", ID: id, Payload: []byte(payload)}
}

// testSignal wants the payload of a signal to be the output of the step that waits for it,
// whichever comes first.
func testSignal(s *setup) {
	id := s.startWorkflow(jobhost.WorkflowStart{Workflow: "approval"})
	run := s.workflow(id)
	if ask := s.stepOf(&run, "ask"); run.Status != jobhost.WorkflowRunning || ask.Status != jobhost.StepRunning || ask.Reason == "" {
		s.Errorf("it waits as %s: %+v", run.Status, ask)
	}
	s.check(s.server.SignalWorkflow(s.ctx, id, approved("", `{"by":"Ada"}`)))
	run = s.waitWorkflow(id)
	s.wantRun(&run, "completed: ask completed, publish completed", `{"by":"Ada"}`)

	first := jobhost.Step{Name: "first", Signal: "go"}
	later := jobhost.Step{Name: "later", Signal: "approved", Needs: []string{"first"}}
	again := jobhost.Step{Name: "again", Signal: "approved", Needs: []string{"later"}}
	id = s.startWorkflow(jobhost.WorkflowStart{Definition: define(first, later, again)})
	s.check(s.server.SignalWorkflow(s.ctx, id, approved("1", "1")))
	s.check(s.server.SignalWorkflow(s.ctx, id, approved("1", "1"))) // counts once
	s.check(s.server.SignalWorkflow(s.ctx, id, jobhost.WorkflowSignal{Name: "go"}))
	run = s.workflow(id)
	s.wantRun(&run, "running: first completed, later completed, again running", "")
	s.check(s.server.SignalWorkflow(s.ctx, id, approved("2", "2")))
	run = s.waitWorkflow(id)
	s.wantRun(&run, "completed: first completed, later completed, again completed", "2")
}

func testSignalRefused(s *setup) {
	id := s.startWorkflow(jobhost.WorkflowStart{Definition: define(jobhost.Step{Name: "a", Signal: "go"}, jobhost.Step{Name: "b", Signal: "approved", Needs: []string{"a"}})})
	signal := func(signal jobhost.WorkflowSignal) error { return s.server.SignalWorkflow(s.ctx, id, signal) }
	s.wantCode(signal(jobhost.WorkflowSignal{Name: "other"}), jobhost.CodeNotFound)
	s.wantCode(signal(jobhost.WorkflowSignal{Name: "a b"}), jobhost.CodeInvalid)
	s.wantCode(signal(approved("", string(make([]byte, jobhost.MaxStepData+1)))), jobhost.CodeTooLarge)
	var err error
	for n := 0; err == nil && n < 1000; n++ {
		err = signal(approved("", "x"))
	}
	s.wantCode(err, jobhost.CodeExhausted)
	_, err = s.server.CancelWorkflow(s.ctx, id, "")
	s.check(err)
	s.wantCode(signal(approved("", "x")), jobhost.CodeConflict)
}

// testCancelWorkflow wants a workflow to end with all that it runs.
func testCancelWorkflow(s *setup) {
	long := step("long", "spin")
	long.Timeout = jobhost.Duration(20 * time.Second)
	id := s.startWorkflow(jobhost.WorkflowStart{Definition: define(long, step("after", "echo", "long"))})
	run := s.becomesWorkflow(id, func(run *jobhost.WorkflowRun) bool { return s.stepOf(run, "long").Job != "" })
	job := s.stepOf(&run, "long").Job
	run, err := s.server.CancelWorkflow(s.ctx, id, "no more")
	s.check(err)
	s.wantRun(&run, "cancelled: long cancelled, after cancelled", "")
	if run.Reason != "no more" || run.EndedAt == nil {
		s.Errorf("got %+v", run)
	}
	s.wantState(s.wait(job), jobhost.Cancelled)
	again, err := s.server.CancelWorkflow(s.ctx, id, "another reason")
	s.check(err)
	if again.Status != jobhost.WorkflowCancelled || again.Reason != "no more" {
		s.Errorf("again: got %+v", again)
	}
	done := s.finishWorkflow(define(step("a", "echo")), "")
	_, err = s.server.CancelWorkflow(s.ctx, done.ID, "")
	s.wantCode(err, jobhost.CodeConflict)
}

// testRetryWorkflow wants a step that has failed to run anew, and the workflow to go on.
func testRetryWorkflow(s *setup) {
	ask := jobhost.Step{Name: "ask", Signal: "approved", Needs: []string{"before"}, Timeout: jobhost.Duration(20 * time.Millisecond)}
	id := s.startWorkflow(jobhost.WorkflowStart{Definition: define(step("before", "echo"), ask, step("after", "echo", "ask")), Input: []byte("1")})
	run := s.waitWorkflow(id)
	s.wantRun(&run, "failed: before completed, ask failed, after cancelled", "")
	if run.Step != "ask" || run.Failure == nil || run.Failure.Code != jobhost.FailTimeout {
		s.Errorf("it failed at %q: %+v", run.Step, run.Failure)
	}
	_, err := s.server.RetryWorkflow(s.ctx, id, "before")
	s.wantCode(err, jobhost.CodeConflict)
	_, err = s.server.RetryWorkflow(s.ctx, id, "nobody")
	s.wantCode(err, jobhost.CodeNotFound)
	for n := 0; run.Status != jobhost.WorkflowCompleted && n < 100; n++ { // the time may be up before the signal comes
		_, err = s.server.RetryWorkflow(s.ctx, id, []string{"", "ask"}[n%2])
		s.check(err)
		if err := s.server.SignalWorkflow(s.ctx, id, approved("", `"yes"`)); err != nil {
			s.wantCode(err, jobhost.CodeConflict)
		}
		run = s.waitWorkflow(id)
	}
	s.wantRun(&run, "completed: before completed, ask completed, after completed", `"yes"`)
	if before, ask := s.stepOf(&run, "before"), s.stepOf(&run, "ask"); before.Runs != 1 || ask.Runs < 2 {
		s.Errorf("before has had %d runs, ask %d", before.Runs, ask.Runs)
	}
	_, err = s.server.RetryWorkflow(s.ctx, id, "")
	s.wantCode(err, jobhost.CodeConflict)
}

// testRetryStepJob wants a workflow to go on when the dead job of its step is retried.
func testRetryStepJob(s *setup) {
	bad := step("bad", "fail_retry")
	bad.Retry = &jobhost.StepRetry{MaxAttempts: 2, Initial: jobhost.Duration(time.Millisecond)}
	run := s.finishWorkflow(define(bad, step("after", "echo", "bad")), "no luck")
	s.wantRun(&run, "failed: bad failed, after cancelled", "")
	job := s.stepOf(&run, "bad").Job
	if dead := s.job(job); dead.State != jobhost.Dead || dead.MaxAttempts != 2 {
		s.Errorf("its job is %s after %d attempts", dead.State, dead.MaxAttempts)
	}
	_, err := s.server.PauseWorker(s.ctx, "test")
	s.check(err)
	_, err = s.server.Retry(s.ctx, job)
	s.check(err)
	run = s.becomesWorkflow(run.ID, func(run *jobhost.WorkflowRun) bool { return run.Status == jobhost.WorkflowRunning })
	s.wantRun(&run, "running: bad running, after pending", "")
	if run.EndedAt != nil || run.Failure != nil || run.Step != "" {
		s.Errorf("it goes on as %+v", run)
	}
	_, err = s.server.ResumeWorker(s.ctx, "test")
	s.check(err)
	run = s.waitWorkflow(run.ID)
	s.wantRun(&run, "failed: bad failed, after cancelled", "")
}

// testNested wants a workflow to be a step of another.
func testNested(s *setup) {
	id := s.startWorkflow(jobhost.WorkflowStart{Workflow: "nested", Input: []byte("1")})
	run := s.becomesWorkflow(id, func(run *jobhost.WorkflowRun) bool { return s.stepOf(run, "inner").Workflow != "" })
	inner := s.stepOf(&run, "inner").Workflow
	child := s.workflow(inner)
	if child.Parent != id || child.ParentStep != "inner" || child.Name != "approval" {
		s.Errorf("got %+v", child)
	}
	page, err := s.server.Workflows(s.ctx, jobhost.WorkflowFilter{Parent: id})
	s.check(err)
	if len(page.Workflows) != 1 || page.Workflows[0].ID != inner {
		s.Errorf("its children are %+v", page)
	}
	s.check(s.server.SignalWorkflow(s.ctx, inner, approved("", `"yes"`)))
	run = s.waitWorkflow(id)
	s.wantRun(&run, "completed: inner completed, last completed", `"yes"`)
	s.wantCode(s.server.DeleteWorkflow(s.ctx, inner), jobhost.CodeConflict)
	s.check(s.server.DeleteWorkflow(s.ctx, id))
	_, err = s.server.Workflow(s.ctx, inner)
	s.wantCode(err, jobhost.CodeNotFound)

	id = s.startWorkflow(jobhost.WorkflowStart{Workflow: "nested"})
	run = s.becomesWorkflow(id, func(run *jobhost.WorkflowRun) bool { return s.stepOf(run, "inner").Workflow != "" })
	_, err = s.server.CancelWorkflow(s.ctx, id, "no more")
	s.check(err)
	if child := s.waitWorkflow(s.stepOf(&run, "inner").Workflow); child.Status != jobhost.WorkflowCancelled {
		s.Errorf("the step of a cancelled workflow is %s", child.Status)
	}
}

func testDeleteWorkflow(s *setup) {
	id := s.startWorkflow(jobhost.WorkflowStart{Workflow: "approval"})
	s.wantCode(s.server.DeleteWorkflow(s.ctx, id), jobhost.CodeConflict)
	run := s.finishWorkflow(define(step("a", "echo")), "")
	s.check(s.server.DeleteWorkflow(s.ctx, run.ID))
	_, err := s.server.Workflow(s.ctx, run.ID)
	s.wantCode(err, jobhost.CodeNotFound)
	_, err = s.server.Job(s.ctx, s.stepOf(&run, "a").Job)
	s.wantCode(err, jobhost.CodeNotFound)
}

// testNoWorkflow wants every call about a workflow that is not there to say so.
func testNoWorkflow(s *setup) {
	const id = "wf-nobody"
	for name, call := range map[string]func() error{
		"workflow":   func() error { _, err := s.server.Workflow(s.ctx, id); return err },
		"child":      func() error { _, err := s.server.Workflow(s.ctx, id+".step.1"); return err },
		"wait":       func() error { _, err := s.server.WaitWorkflow(s.ctx, id); return err },
		"trace":      func() error { _, err := s.server.TraceWorkflow(s.ctx, id); return err },
		"output":     func() error { _, err := s.server.OpenWorkflowOutput(s.ctx, id); return err },
		"definition": func() error { _, err := s.server.DefinitionOf(s.ctx, id); return err },
		"signal":     func() error { return s.server.SignalWorkflow(s.ctx, id, approved("", "")) },
		"cancel":     func() error { _, err := s.server.CancelWorkflow(s.ctx, id, ""); return err },
		"retry":      func() error { _, err := s.server.RetryWorkflow(s.ctx, id, ""); return err },
		"delete":     func() error { return s.server.DeleteWorkflow(s.ctx, id) },
	} {
		if err := call(); jobhost.CodeOf(err) != jobhost.CodeNotFound {
			s.Errorf("%s: got %v", name, err)
		}
	}
	page, err := s.server.Workflows(s.ctx, jobhost.WorkflowFilter{Parent: id})
	s.check(err)
	if len(page.Workflows) != 0 || page.Next != "" {
		s.Errorf("got %s", fmt.Sprint(page))
	}
}
