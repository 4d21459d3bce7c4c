package hosttest

import (
	"io"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// testChain wants outputs to become inputs: as they are, of several by name, and as
// an expression says.
func testChain(s *setup) {
	run := s.finishWorkflow(define(step("a", "echo"), step("b", "echo", "a")), `{"n":1}`)
	s.wantRun(&run, "completed: a completed, b completed", `{"n":1}`)

	picks := step("picks", "echo", "a")
	picks.Input = `{"double": steps.a.output.n * 2, "of": input.n, "name": workflow.name}`
	run = s.finishWorkflow(define(step("a", "echo"), picks), `{"n":21}`)
	s.wantRun(&run, "completed: a completed, picks completed", `{"double":42,"of":21,"name":"along"}`)

	left := step("left", "echo")
	left.Input = `"text"`
	run = s.finishWorkflow(define(left, step("right", "echo"), step("both", "echo", "left", "right")), `[1]`)
	s.wantRun(&run, "completed: left completed, right completed, both completed", `{"left":"text","right":[1]}`)
	s.wantResult(s.stepOf(&run, "left").Job, 0, []byte("text"))
}

// testFanOut wants a task for each element, and what they return in the same order.
func testFanOut(s *setup) {
	each := step("each", "echo")
	each.FanOut, each.Input, each.MaxParallel = "input", `{"i": index, "v": item}`, 2
	run := s.finishWorkflow(define(each, step("after", "echo", "each")), `["c","a","b"]`)
	s.wantRun(&run, "completed: each completed, after completed", `[{"i":0,"v":"c"},{"i":1,"v":"a"},{"i":2,"v":"b"}]`)
	if got := s.stepOf(&run, "each").Tasks; got != 3 {
		s.Errorf("there were %d tasks", got)
	}
	each.Input = ""
	run = s.finishWorkflow(define(each), `[3,1,2]`)
	s.wantRun(&run, "completed: each completed", `[3,1,2]`)
	run = s.finishWorkflow(define(each), `[]`)
	s.wantRun(&run, "completed: each completed", `[]`)
	run = s.finishWorkflow(define(each), `{}`)
	s.wantRun(&run, "failed: each failed", "")
	if run.Step != "each" || run.Failure == nil || run.Failure.Code != jobhost.FailExpression {
		s.Errorf("it failed at %q: %+v", run.Step, run.Failure)
	}
}

func testStepTasks(s *setup) {
	three := step("three", "echo")
	three.Tasks = 3
	run := s.finishWorkflow(define(three), `7`)
	s.wantRun(&run, "completed: three completed", `[7,7,7]`)
}

// testCondition wants a step to be skipped, with those after it that don't say otherwise.
func testCondition(s *setup) {
	maybe := step("maybe", "echo")
	maybe.When = "input.go"
	anyway := step("anyway", "echo", "maybe", "other")
	anyway.WhenSkipped = jobhost.RunAnyway
	anyway.Input = `steps.maybe.status`
	w := define(maybe, step("other", "echo"), step("after", "echo", "maybe"), anyway)
	w.Output = "steps.anyway.output"
	run := s.finishWorkflow(w, `{"go":false}`)
	s.wantRun(&run, "completed: maybe skipped, other completed, after skipped, anyway completed", `"skipped"`)
	if skipped := s.stepOf(&run, "maybe"); skipped.Reason == "" || skipped.Job != "" {
		s.Errorf("got %+v", skipped)
	}
	run = s.finishWorkflow(w, `{"go":true}`)
	s.wantRun(&run, "completed: maybe completed, other completed, after completed, anyway completed", `"completed"`)
}

// testFallback wants a step to run in the place of one that failed.
func testFallback(s *setup) {
	first := step("first", "fail_permanent")
	first.Fallback = "instead"
	instead := step("instead", "echo")
	instead.Input = `{"because": steps.first.error.message}`
	run := s.finishWorkflow(define(first, instead, step("after", "echo", "first")), "no luck")
	s.wantRun(&run, "completed: first completed, instead completed, after completed", `{"because":"no luck"}`)
	if got := s.stepOf(&run, "first").Fallback; got != "instead" {
		s.Errorf("the fallback was %q", got)
	}
	first.Entry = "echo"
	run = s.finishWorkflow(define(first, instead, step("after", "echo", "first")), `"x"`)
	s.wantRun(&run, "completed: first completed, instead skipped, after completed", `"x"`)
	first.Entry, instead.Entry = "fail_permanent", "fail_permanent"
	run = s.finishWorkflow(define(first, instead), "bad")
	if run.Status != jobhost.WorkflowFailed || run.Failure == nil {
		s.Errorf("with two failures it is %s: %+v", run.Status, run.Failure)
	}
}

// testOnError wants a failure to be one of the workflow, if the step doesn't say otherwise.
func testOnError(s *setup) {
	bad := step("bad", "fail_permanent")
	run := s.finishWorkflow(define(bad, step("after", "echo", "bad")), "no luck")
	s.wantRun(&run, "failed: bad failed, after cancelled", "")
	failure := s.stepOf(&run, "bad").Failure
	if run.Step != "bad" || run.Failure == nil || failure == nil || failure.Code != jobhost.FailWorker || failure.Message != "no luck" {
		s.Errorf("it failed at %q: %+v, the step %+v", run.Step, run.Failure, failure)
	}
	bad.OnError = jobhost.ContinueWorkflow
	after := step("after", "echo", "bad")
	after.Input = `steps.bad.error.message + " but on"`
	run = s.finishWorkflow(define(bad, after), "no luck")
	s.wantRun(&run, "completed: bad failed, after completed", `"no luck but on"`)
}

// testTerminate wants a workflow to end early, with what still runs.
func testTerminate(s *setup) {
	enough := step("enough", "echo")
	enough.Terminate = "output.enough"
	waits := jobhost.Step{Name: "waits", Signal: "never", Needs: []string{"enough"}}
	aside := jobhost.Step{Name: "aside", Signal: "never"}
	run := s.finishWorkflow(define(enough, waits, aside), `{"enough":true}`)
	s.wantRun(&run, "completed: enough completed, waits cancelled, aside cancelled", `{"enough":true}`)
	if run.Step != "enough" {
		s.Errorf("it was terminated by %q", run.Step)
	}
	id := s.startWorkflow(jobhost.WorkflowStart{Definition: define(enough, waits), Input: []byte(`{"enough":false}`)})
	s.becomesWorkflow(id, func(run *jobhost.WorkflowRun) bool { return s.stepOf(run, "waits").Status == jobhost.StepRunning })
}

// testWorkflowOutput wants what a workflow returns to be what it says: the output of its last
// steps by name if it says nothing.
func testWorkflowOutput(s *setup) {
	a, b := step("a", "echo"), step("b", "empty")
	run := s.finishWorkflow(define(a, b), `1`)
	s.wantRun(&run, "completed: a completed, b completed", `{"a":1,"b":""}`)
	a.Output = true
	run = s.finishWorkflow(define(a, b), `1`)
	s.wantRun(&run, "completed: a completed, b completed", `1`)
	a.Output = false
	w := define(a, b)
	w.Output = "steps.a.output + 1"
	run = s.finishWorkflow(w, `1`)
	s.wantRun(&run, "completed: a completed, b completed", `2`)
	large := `"` + strings.Repeat("x", 40_000) + `"` // it may be kept elsewhere, and not shown
	s.wantOutput(define(a), large, large)
	if small := `"` + strings.Repeat("x", 500) + `"`; !s.Failed() {
		// Put together it is too large to be shown, though each part may be kept anywhere.
		a.Tasks = 200
		s.wantOutput(define(a), small, "["+strings.Repeat(small+",", 199)+small+"]")
	}
	id := s.startWorkflow(jobhost.WorkflowStart{Definition: define(jobhost.Step{Name: "waits", Signal: "never"})})
	_, err := s.server.OpenWorkflowOutput(s.ctx, id)
	s.wantCode(err, jobhost.CodeConflict)
}

// wantOutput wants a workflow to return something of which the whole can be had.
func (s *setup) wantOutput(w *jobhost.Workflow, input, output string) {
	s.Helper()
	run := s.finishWorkflow(w, input)
	if run.OutputSize != int64(len(output)) || run.Output != nil && string(run.Output) != output {
		s.Errorf("of an output of %d bytes it shows %d and says %d: %s, %s, %+v", len(output), len(run.Output), run.OutputSize, run.Status, run.Reason, run.Failure)
	}
	content, err := s.server.OpenWorkflowOutput(s.ctx, run.ID)
	if err != nil {
		s.Fatal(err)
	}
	defer content.Close()
	if got, err := io.ReadAll(content); err != nil || string(got) != output || content.Size != int64(len(output)) {
		s.Errorf("an output of %d bytes, said to be %d, instead of %d: %v", len(got), content.Size, len(output), err)
	}
}

func testSleep(s *setup) {
	nap := jobhost.Step{Name: "nap", Sleep: jobhost.Duration(10 * time.Millisecond), Needs: []string{"a"}}
	run := s.finishWorkflow(define(step("a", "echo"), nap, step("b", "empty", "nap")), `1`)
	s.wantRun(&run, "completed: a completed, nap completed, b completed", `""`)
	if slept := s.stepOf(&run, "nap"); slept.EndedAt.Sub(*slept.StartedAt) < 9*time.Millisecond {
		s.Errorf("it slept from %v to %v", slept.StartedAt, slept.EndedAt)
	}
}

// testWorkflowTimeout wants a workflow to fail that takes too long, and a wait for a signal.
func testWorkflowTimeout(s *setup) {
	w := define(jobhost.Step{Name: "waits", Signal: "never"})
	w.Timeout = jobhost.Duration(20 * time.Millisecond)
	run := s.finishWorkflow(w, "")
	s.wantRun(&run, "failed: waits cancelled", "")
	if run.Failure == nil || run.Failure.Code != jobhost.FailTimeout {
		s.Errorf("it failed by %+v", run.Failure)
	}
}
