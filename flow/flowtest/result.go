package flowtest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// Result is the current state of a run, or how it ended.
type Result struct {
	Status jobhost.WorkflowStatus
	// EndedBy is the step that made it fail, or terminated it; empty = no single step did.
	EndedBy string
	// Failure says why it failed, and Reason why it was cancelled.
	Failure *jobhost.Failure
	Reason  string
	// StartedAt and EndedAt are simulated times; EndedAt is zero while it runs.
	StartedAt, EndedAt time.Time

	run   *Run
	data  []byte
	trace Trace
	steps []Step
}

// Step is the current state of a step, or how it ended.
type Step struct {
	Name   string
	Status jobhost.StepStatus
	// Reason says what it waits for, or why it was skipped or cancelled.
	Reason string
	// Failure says why it failed, or why the last attempt of a retrying step did.
	Failure *jobhost.Failure
	// Runs counts how often it has begun, and Attempts the calls of functions for it: of all
	// tasks, of all runs, and of its fallback worker.
	Runs, Attempts int
	// Fallback means that its fallback runs or ran in its place.
	Fallback bool
	// StartedAt and EndedAt are simulated times, zero if it has not started or ended.
	StartedAt, EndedAt time.Time

	kit  *Kit
	data []byte
}

// Look returns the current state of the run.
func (r *Run) Look() *Result {
	r.kit.t.Helper()
	res := &Result{
		Status: jobhost.WorkflowRunning, StartedAt: r.started, EndedAt: r.ended,
		run: r, data: slices.Clone(r.output), trace: slices.Clone(r.trace),
	}
	look := r.look()
	if look == nil { // the test has failed
		return res
	}
	res.Status = look.Status()
	if r.end != nil {
		res.Failure, res.Reason = r.end.Failure, r.end.Reason
		if r.end.Step != machine.None {
			res.EndedBy = r.def.plan.Workflow.Steps[r.end.Step].Name
		}
	}
	for i := range r.steps {
		res.steps = append(res.steps, r.step(look, i))
	}
	return res
}

func (r *Run) step(look *machine.Look, i int) Step {
	p := &r.steps[i]
	s := Step{
		Name: r.def.plan.Workflow.Steps[i].Name, Status: look.Step(i), Reason: p.change.Reason, Runs: p.runs,
		Attempts: p.attempts, Fallback: p.change.Fallback, StartedAt: p.started, EndedAt: p.ended, kit: r.kit,
	}
	if s.Status == jobhost.StepFailed || s.Status == jobhost.StepCancelled || s.Status == jobhost.StepRetrying || s.Fallback {
		s.Failure = p.failure
	}
	switch from := look.Output(i); from.Kind {
	case machine.Nothing:
	case machine.Empty:
		s.data = []byte("[]")
	default:
		s.data = slices.Clone(r.data[from])
	}
	return s
}

// Output decodes what the workflow returned, which must be JSON, as [json.Unmarshal]
// does. One that has not completed fails the test.
func (r *Result) Output(v any) {
	r.run.kit.t.Helper()
	if r.Status != jobhost.WorkflowCompleted {
		r.run.kit.fatalf("workflow %s has no output, it is %s%s", r.run.Name(), r.Status, because(r.Failure, r.Reason))
		return
	}
	decode(r.run.kit, "workflow "+r.run.Name(), r.data, v)
}

// Bytes returns what the workflow returned, unchanged; nil = nothing.
func (r *Result) Bytes() []byte { return r.data }

// Trace returns what happened.
func (r *Result) Trace() Trace { return r.trace }

// Steps returns all steps in the order of the definition.
func (r *Result) Steps() []Step { return r.steps }

// Step returns a step; a missing one fails the test.
func (r *Result) Step(name string) Step {
	r.run.kit.t.Helper()
	if i := r.run.index(name); i >= 0 && i < len(r.steps) {
		return r.steps[i]
	}
	return Step{Name: name, kit: r.run.kit}
}

// Step returns the current state of a step: see [Result.Step].
func (r *Run) Step(name string) Step {
	r.kit.t.Helper()
	return r.Look().Step(name)
}

// Output decodes what the step returned, which must be JSON, as [json.Unmarshal] does. One
// that has not completed fails the test.
func (s Step) Output(v any) {
	s.kit.t.Helper()
	if s.Status != jobhost.StepCompleted {
		s.kit.fatalf("step %s has no output, it is %s%s", s.Name, s.Status, because(s.Failure, s.Reason))
		return
	}
	decode(s.kit, "step "+s.Name, s.data, v)
}

// Bytes returns what the step returned, unchanged; nil = nothing.
func (s Step) Bytes() []byte { return s.data }

func because(f *jobhost.Failure, reason string) string {
	switch {
	case f != nil:
		return ": " + f.Message
	case reason != "":
		return ": " + reason
	}
	return ""
}

func decode(k *Kit, what string, data []byte, v any) {
	k.t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		k.fatalf("the output of %s is not a %T: %v: %s", what, v, err, clip(data))
	}
}
