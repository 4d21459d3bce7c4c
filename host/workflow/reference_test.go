package workflow_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
)

// reference works out where the steps of a workflow stand when all has ended, from
// what its definition says that they come to. What ends the workflow before is looked at afterwards.
type reference struct {
	w    *jobhost.Workflow
	memo map[string]jobhost.StepStatus
}

func newReference(w *jobhost.Workflow) *reference {
	return &reference{w, map[string]jobhost.StepStatus{}}
}

func (m *reference) step(name string) *jobhost.Step {
	i := slices.IndexFunc(m.w.Steps, func(s jobhost.Step) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &m.w.Steps[i]
}

func (m *reference) owner(name string) *jobhost.Step {
	i := slices.IndexFunc(m.w.Steps, func(s jobhost.Step) bool { return s.Fallback == name })
	if i < 0 {
		return nil
	}
	return &m.w.Steps[i]
}

// status is where a step stands, with its fallback.
func (m *reference) status(name string) jobhost.StepStatus {
	if s, found := m.memo[name]; found {
		return s
	}
	s, step := m.alone(name), m.step(name)
	if s == jobhost.StepFailed && step.Fallback != "" {
		s = jobhost.StepCompleted
		isStep := m.step(step.Fallback) != nil
		if isStep && m.status(step.Fallback) != jobhost.StepCompleted || !isStep && m.fanOut(step) == "input.none" {
			s = jobhost.StepFailed
		}
	}
	m.memo[name] = s
	return s
}

// alone is where a step stands without its fallback.
func (m *reference) alone(name string) jobhost.StepStatus {
	step := m.step(name)
	if owner := m.owner(name); owner != nil && m.alone(owner.Name) != jobhost.StepFailed {
		return jobhost.StepSkipped
	}
	skips := 0
	for _, need := range step.Needs {
		if m.status(need) == jobhost.StepSkipped {
			skips++
		}
	}
	if skips > 0 && step.WhenSkipped != jobhost.RunWhatever && (step.WhenSkipped != jobhost.RunAnyway || skips == len(step.Needs)) {
		return jobhost.StepSkipped
	}
	switch step.When {
	case "1 > 2":
		return jobhost.StepSkipped
	case "input.none == 1":
		return jobhost.StepFailed
	}
	switch fanOut := m.fanOut(step); {
	case fanOut == "input.none":
		return jobhost.StepFailed
	case fanOut == "[]":
		return jobhost.StepCompleted
	}
	if step.Workflow == "dead" || step.Entry == "dead" || step.Entry == "worn" || step.Entry == "last" {
		return jobhost.StepFailed
	}
	return jobhost.StepCompleted
}

// fanOut is that of a step, or of the one that it stands in for.
func (m *reference) fanOut(step *jobhost.Step) string {
	if owner := m.owner(step.Name); step.Worker != "" && step.Tasks == 0 && step.FanOut == "" && owner != nil {
		return m.fanOut(owner)
	}
	return step.FanOut
}

// fatal reports whether the workflow fails with a step.
func (m *reference) fatal(name string) bool {
	return m.status(name) == jobhost.StepFailed && m.owner(name) == nil && m.step(name).OnError != jobhost.ContinueWorkflow
}

func (m *reference) terminates(name string) bool {
	step := m.step(name)
	return step.Terminate != "" && m.status(name) == jobhost.StepCompleted
}

// compare holds what has become of a workflow against it. If something ends it early, which of
// those that run beside that still came to their ends is open.
func (m *reference) compare(rt *rapid.T, run *jobhost.WorkflowRun) {
	rt.Helper()
	early, fatal, terminal := false, []string{}, []string{}
	for i := range m.w.Steps {
		name := m.w.Steps[i].Name
		if m.fatal(name) {
			fatal = append(fatal, name)
		}
		if m.terminates(name) {
			terminal = append(terminal, name)
		}
	}
	early = len(fatal)+len(terminal) > 0
	switch {
	case !early && (run.Status != jobhost.WorkflowCompleted || run.Step != ""),
		early && run.Status == jobhost.WorkflowFailed && !slices.Contains(fatal, run.Step),
		early && run.Status == jobhost.WorkflowCompleted && !slices.Contains(terminal, run.Step):
		rt.Fatalf("it ended by %q, of %v and %v: %s", run.Step, fatal, terminal, statuses(run))
	}
	for i := range run.Steps {
		got, want := &run.Steps[i], m.status(run.Steps[i].Name)
		if got.Status != want && !(early && got.Status == jobhost.StepCancelled) {
			rt.Fatalf("step %s is %s, not %s: %s\n%+v", got.Name, got.Status, want, statuses(run), m.w.Steps)
		}
	}
}
