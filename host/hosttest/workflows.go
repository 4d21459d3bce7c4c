package hosttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// Definitions returns the definitions that a server under test must have, sorted by name.
func Definitions() []jobhost.Workflow {
	echo := func(name string, needs ...string) jobhost.Step {
		return jobhost.Step{Name: name, Worker: "test", Entry: "echo", Needs: needs}
	}
	ask := jobhost.Step{Name: "ask", Signal: "approved"}
	return []jobhost.Workflow{
		{Name: "approval", Description: "Waits until somebody approves.", Steps: []jobhost.Step{ask, echo("publish", "ask")}},
		{Name: "chain", Labels: map[string]string{"kind": "chain"}, Steps: []jobhost.Step{echo("first"), echo("second", "first")}},
		{Name: "nested", Steps: []jobhost.Step{{Name: "inner", Workflow: "approval"}, echo("last", "inner")}},
	}
}

// RunWorkflows tests the workflows of a server as [Run] does the rest. The server must
// have what Run asks for, and [Definitions].
func RunWorkflows(t *testing.T, open func(t testing.TB) jobhost.Server, without ...Without) {
	tests := map[string]func(*setup){
		"start":          testStartWorkflow,
		"start again":    testStartWorkflowAgain,
		"start refused":  testStartWorkflowRefused,
		"all faults":     testAllFaults,
		"definitions":    testDefinitions,
		"chain":          testChain,
		"fan out":        testFanOut,
		"tasks":          testStepTasks,
		"condition":      testCondition,
		"fallback":       testFallback,
		"on_error":       testOnError,
		"terminate":      testTerminate,
		"output":         testWorkflowOutput,
		"sleep":          testSleep,
		"signal":         testSignal,
		"signal refused": testSignalRefused,
		"timeout":        testWorkflowTimeout,
		"cancel":         testCancelWorkflow,
		"retry":          testRetryWorkflow,
		"retry of a job": testRetryStepJob,
		"nested":         testNested,
		"wait":           testWaitWorkflow,
		"list":           testListWorkflows,
		"trace":          testTrace,
		"events":         testWorkflowEvents,
		"delete":         testDeleteWorkflow,
		"not found":      testNoWorkflow,
	}
	runAll(t, tests, open, without)
}

// step returns a step that runs an entry of the worker.
func step(name, entry string, needs ...string) jobhost.Step {
	return jobhost.Step{Name: name, Worker: "test", Entry: entry, Needs: needs}
}

// define returns a definition.
func define(steps ...jobhost.Step) *jobhost.Workflow {
	return &jobhost.Workflow{Name: "along", Steps: steps}
}

func (s *setup) startWorkflow(start jobhost.WorkflowStart) string {
	s.Helper()
	receipt, err := s.server.StartWorkflow(s.ctx, start)
	s.check(err)
	return receipt.ID
}

// finishWorkflow starts a definition and waits for its end.
func (s *setup) finishWorkflow(w *jobhost.Workflow, input string) jobhost.WorkflowRun {
	s.Helper()
	return s.waitWorkflow(s.startWorkflow(jobhost.WorkflowStart{Definition: w, Input: []byte(input)}))
}

func (s *setup) waitWorkflow(id string) jobhost.WorkflowRun {
	s.Helper()
	run, err := s.server.WaitWorkflow(s.ctx, id)
	s.check(err)
	if !run.Status.Ended() {
		s.Fatalf("wait returned workflow %s, which is %s", id, run.Status)
	}
	return run
}

func (s *setup) workflow(id string) jobhost.WorkflowRun {
	s.Helper()
	run, err := s.server.Workflow(s.ctx, id)
	s.check(err)
	return run
}

// wantRun checks how a workflow and its steps stand, as "completed: a completed, b skipped",
// and what it has returned: "" = nothing.
func (s *setup) wantRun(run *jobhost.WorkflowRun, want, output string) {
	s.Helper()
	steps := make([]string, len(run.Steps))
	for i := range run.Steps {
		steps[i] = run.Steps[i].Name + " " + string(run.Steps[i].Status)
	}
	if got := string(run.Status) + ": " + strings.Join(steps, ", "); got != want {
		s.Errorf("workflow %s is %s, want %s (%+v)", run.ID, got, want, run.Failure)
	}
	if !sameJSON(run.Output, output) {
		s.Errorf("workflow %s has returned %s, want %s", run.ID, run.Output, output)
	}
}

// sameJSON reports whether JSON says the same as a text.
func sameJSON(got json.RawMessage, want string) bool {
	if want == "" || len(got) == 0 {
		return want == "" && len(got) == 0
	}
	var a, b any
	return json.Unmarshal(got, &a) == nil && json.Unmarshal([]byte(want), &b) == nil && reflect.DeepEqual(a, b)
}

// stepOf returns a step of a workflow.
func (s *setup) stepOf(run *jobhost.WorkflowRun, name string) *jobhost.StepRun {
	s.Helper()
	for i := range run.Steps {
		if run.Steps[i].Name == name {
			return &run.Steps[i]
		}
	}
	s.Fatalf("workflow %s has no step %s: %+v", run.ID, name, run.Steps)
	return nil
}

// becomesWorkflow waits until a workflow is as wanted.
func (s *setup) becomesWorkflow(id string, wanted func(*jobhost.WorkflowRun) bool) jobhost.WorkflowRun {
	s.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		run := s.workflow(id)
		if wanted(&run) {
			return run
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.Fatalf("workflow %s stays as %+v", id, run)
		}
	}
}

func testStartWorkflow(s *setup) {
	before := time.Now().Add(-time.Second)
	receipt, err := s.server.StartWorkflow(s.ctx, jobhost.WorkflowStart{Workflow: "chain", Input: []byte(`{"n":1}`), Labels: map[string]string{"a": "1"}})
	s.check(err)
	if jobhost.CheckWorkflowID(receipt.ID) != nil || receipt.Deduplicated || receipt.Status == "" {
		s.Errorf("got %+v", receipt)
	}
	run := s.waitWorkflow(receipt.ID)
	s.wantRun(&run, "completed: first completed, second completed", `{"n":1}`)
	if run.ID != receipt.ID || run.Name != "chain" || !maps.Equal(run.Labels, map[string]string{"a": "1", "kind": "chain"}) || len(run.Definition) != 64 ||
		run.StartedAt.Before(before) || run.EndedAt == nil || run.EndedAt.Before(run.StartedAt.Truncate(time.Millisecond)) || run.Parent != "" || run.Failure != nil {
		s.Errorf("got %+v", run)
	}
	first := s.stepOf(&run, "first")
	if first.Job == "" || first.Tasks != 1 || first.Runs != 1 || first.StartedAt == nil || first.EndedAt == nil || !sameJSON(first.Output, `{"n":1}`) {
		s.Errorf("got %+v", first)
	}
	job := s.job(first.Job)
	s.wantState(job, jobhost.Succeeded)
	if job.Workflow != run.ID || job.Step != "first" || job.Worker != "test" {
		s.Errorf("its job is of workflow %q, step %q", job.Workflow, job.Step)
	}
	along := s.finishWorkflow(define(step("only", "echo")), "no JSON")
	s.wantRun(&along, "completed: only completed", `"no JSON"`)
	if along.Name != "along" || along.ID == run.ID {
		s.Errorf("got %+v", along)
	}
}

func testStartWorkflowAgain(s *setup) {
	start := jobhost.WorkflowStart{ID: "wf-once", Workflow: "approval", Input: []byte("1"), Labels: map[string]string{"a": "b"}}
	s.startWorkflow(start)
	again, err := s.server.StartWorkflow(s.ctx, start)
	s.check(err)
	if again.ID != "wf-once" || !again.Deduplicated || again.Status != jobhost.WorkflowRunning {
		s.Errorf("got %+v", again)
	}
	for name, change := range map[string]func(*jobhost.WorkflowStart){
		"input":    func(w *jobhost.WorkflowStart) { w.Input = []byte("2") },
		"labels":   func(w *jobhost.WorkflowStart) { w.Labels = nil },
		"workflow": func(w *jobhost.WorkflowStart) { w.Workflow = "chain" },
	} {
		other := start
		change(&other)
		if _, err := s.server.StartWorkflow(s.ctx, other); jobhost.CodeOf(err) != jobhost.CodeConflict {
			s.Errorf("another %s: got %v", name, err)
		}
	}
	_, err = s.server.CancelWorkflow(s.ctx, "wf-once", "")
	s.check(err)
	again, err = s.server.StartWorkflow(s.ctx, start)
	s.check(err)
	if !again.Deduplicated || again.Status != jobhost.WorkflowCancelled {
		s.Errorf("after its end: got %+v", again)
	}
}

func testStartWorkflowRefused(s *setup) {
	for name, test := range map[string]struct {
		start jobhost.WorkflowStart
		code  jobhost.Code
	}{
		"nothing":    {jobhost.WorkflowStart{}, jobhost.CodeInvalid},
		"both":       {jobhost.WorkflowStart{Workflow: "chain", Definition: define(step("a", "echo"))}, jobhost.CodeInvalid},
		"id":         {jobhost.WorkflowStart{ID: "order", Workflow: "chain"}, jobhost.CodeInvalid},
		"unknown":    {jobhost.WorkflowStart{Workflow: "nobody"}, jobhost.CodeNotFound},
		"no steps":   {jobhost.WorkflowStart{Definition: define()}, jobhost.CodeInvalid},
		"no worker":  {jobhost.WorkflowStart{Definition: define(jobhost.Step{Name: "a", Worker: "nobody"})}, jobhost.CodeInvalid},
		"much input": {jobhost.WorkflowStart{Workflow: "chain", Input: make([]byte, 2<<20)}, jobhost.CodeTooLarge},
	} {
		if _, err := s.server.StartWorkflow(s.ctx, test.start); jobhost.CodeOf(err) != test.code {
			s.Errorf("%s: got %v, want %s", name, err, test.code)
		}
	}
}

// testAllFaults wants every fault of a definition to be told at once, with its field.
func testAllFaults(s *setup) {
	w := define(
		jobhost.Step{Name: "a", Worker: "nobody", When: "1 +"},
		jobhost.Step{Name: "b", Worker: "test", Needs: []string{"c", "gone"}},
		jobhost.Step{Name: "c", Worker: "test", Needs: []string{"b"}},
		jobhost.Step{Name: "d", Workflow: "missing"},
	)
	checked := s.server.CheckWorkflow(s.ctx, *w)
	_, started := s.server.StartWorkflow(s.ctx, jobhost.WorkflowStart{Definition: w})
	for _, err := range []error{checked, started} {
		s.wantCode(firstOf(err), jobhost.CodeInvalid)
		fields := map[string]bool{}
		for _, e := range allOf(err) {
			name, _, _ := strings.Cut(strings.TrimPrefix(e.Field, "steps."), ".")
			fields[name] = true
		}
		if !fields["a"] || !fields["d"] || !fields["b"] && !fields["c"] || len(allOf(err)) < 4 {
			s.Errorf("got %v in fields %v", err, fields)
		}
	}
	s.check(s.server.CheckWorkflow(s.ctx, *define(step("a", "echo"))))
}

// allOf returns the [jobhost.Error] values in a tree of errors.
func allOf(err error) []*jobhost.Error {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here, one level at a time
	case nil:
		return nil
	case *jobhost.Error:
		return []*jobhost.Error{e}
	case interface{ Unwrap() []error }:
		var all []*jobhost.Error
		for _, one := range e.Unwrap() {
			all = append(all, allOf(one)...)
		}
		return all
	default:
		return allOf(errors.Unwrap(err))
	}
}

func firstOf(err error) error {
	if all := allOf(err); len(all) > 0 {
		return all[0]
	}
	return err
}

func testDefinitions(s *setup) {
	list, err := s.server.Definitions(s.ctx)
	s.check(err)
	want := Definitions()
	if fmt.Sprint(names(list)) != fmt.Sprint(names(want)) {
		s.Errorf("got %v", names(list))
	}
	one, err := s.server.Definition(s.ctx, "approval")
	s.check(err)
	if one.Name != "approval" || len(one.Steps) != 2 || one.Steps[0].Signal != "approved" || one.Steps[1].Needs[0] != "ask" {
		s.Errorf("got %+v", one)
	}
	_, err = s.server.Definition(s.ctx, "nobody")
	s.wantCode(err, jobhost.CodeNotFound)
	id := s.startWorkflow(jobhost.WorkflowStart{Definition: define(step("a", "echo"))})
	of, err := s.server.DefinitionOf(s.ctx, id)
	s.check(err)
	if of.Name != "along" || len(of.Steps) != 1 || of.Steps[0].Entry != "echo" {
		s.Errorf("got %+v", of)
	}
}

func names(list []jobhost.Workflow) (names []string) {
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}
