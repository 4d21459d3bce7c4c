package machine_test

import (
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// fact is what became of a run.
type fact int

const (
	none fact = iota
	fine
	dead
	gone // cancelled by hand
)

// The words of the reference for where a step stands: those of jobhost, and open
// for all between pending and an end.
const open = jobhost.StepRunning

// reference tells where all steps stand, from nothing but the facts: how runs
// ended, and which signals have come. It works it out anew each time.
type reference struct {
	s        *site
	own      map[int]fact // of the step's last run
	replaced map[int]fact // of its fallback worker's
	signals  map[int]int  // that were not taken, by the step that waits for them
	taken    []int        // of which the last view took a signal
	memo     map[int]jobhost.StepStatus
}

func newReference(s *site) *reference {
	return &reference{s: s, own: map[int]fact{}, replaced: map[int]fact{}, signals: map[int]int{}}
}

// view returns the status of every step. Signals that steps wait for are taken.
func (m *reference) view() []jobhost.StepStatus {
	m.taken = nil
	for again := true; again; {
		again = false
		m.memo = map[int]jobhost.StepStatus{}
		for i, node := range m.s.graph.Steps {
			if node.Kind == machine.Signal && m.stage(i) == open && m.signals[i] > 0 {
				m.signals[i]--
				m.own[i] = fine
				m.taken = append(m.taken, i)
				again = true
				break
			}
		}
	}
	list := make([]jobhost.StepStatus, len(m.s.graph.Steps))
	for i := range list {
		list[i] = m.status(i)
	}
	return list
}

// status is where a step stands, with its fallback.
func (m *reference) status(i int) jobhost.StepStatus {
	if s, found := m.memo[i]; found {
		return s
	}
	s := m.stage(i)
	node := &m.s.graph.Steps[i]
	switch {
	case s != jobhost.StepFailed:
	case node.Fallback != machine.None:
		switch f := m.status(node.Fallback); {
		case f == jobhost.StepCompleted:
			s = m.judge(i)
		case !f.Ended():
			s = open
		}
	case node.FallbackWorker:
		s = m.outcome(i, m.replaced[i])
	}
	m.memo[i] = s
	return s
}

// stage is where a step stands without its fallback.
func (m *reference) stage(i int) jobhost.StepStatus {
	node := &m.s.graph.Steps[i]
	if owner := node.FallbackOf; owner != machine.None {
		switch s := m.stage(owner); {
		case !s.Ended():
			return jobhost.StepPending
		case s != jobhost.StepFailed:
			return jobhost.StepSkipped
		}
	}
	skips := 0
	for _, need := range node.Needs {
		switch s := m.status(int(need)); {
		case !s.Ended():
			return jobhost.StepPending
		case s == jobhost.StepSkipped:
			skips++
		}
	}
	if skips > 0 && node.WhenSkipped != jobhost.RunWhatever {
		if node.WhenSkipped != jobhost.RunAnyway || skips == len(node.Needs) {
			return jobhost.StepSkipped
		}
	}
	if node.HasWhen {
		switch m.s.eval.when[i] {
		case "false":
			return jobhost.StepSkipped
		case "error":
			return jobhost.StepFailed
		}
	}
	return m.outcome(i, m.own[i])
}

// outcome is where a run leaves a step.
func (m *reference) outcome(i int, f fact) jobhost.StepStatus {
	node := &m.s.graph.Steps[i]
	switch {
	case m.s.eval.input[m.saysInput(i)] == "error", node.HasFanOut && m.s.eval.fanOut[i] < 0:
		return jobhost.StepFailed
	case node.HasFanOut && m.s.eval.fanOut[i] == 0:
		return m.judge(i)
	case f == none:
		return open
	case f == gone:
		return jobhost.StepCancelled
	case f == dead:
		return jobhost.StepFailed
	}
	return m.judge(i)
}

// saysInput returns the step that says what a step gets: a fallback gets what the step
// has got that it stands in for.
func (m *reference) saysInput(i int) int {
	node := &m.s.graph.Steps[i]
	if waits := node.Kind == machine.Signal || node.Kind == machine.Sleep; waits {
		return machine.None
	}
	for node.FallbackOf != machine.None && len(node.Needs) == 0 && !node.HasInput && !node.HasFanOut {
		i = node.FallbackOf
		node = &m.s.graph.Steps[i]
	}
	if !node.HasInput {
		return machine.None
	}
	return i
}

// judge is what a success comes to.
func (m *reference) judge(i int) jobhost.StepStatus {
	if m.s.graph.Steps[i].HasTerminate && m.s.eval.terminate[i] == "error" {
		return jobhost.StepFailed
	}
	return jobhost.StepCompleted
}

// enders returns the steps that end the workflow: those whose failure does, and
// those that terminate it.
func (m *reference) enders(list []jobhost.StepStatus) (failing, terminating []int) {
	for i, s := range list {
		node := &m.s.graph.Steps[i]
		if (s == jobhost.StepFailed || s == jobhost.StepCancelled) && node.FallbackOf == machine.None && node.OnError != jobhost.ContinueWorkflow {
			failing = append(failing, i)
		}
		if s == jobhost.StepCompleted && node.HasTerminate && m.s.eval.terminate[i] == "true" {
			terminating = append(terminating, i)
		}
	}
	return failing, terminating
}

// compare holds the workflow against the reference.
func (m *reference) compare() {
	m.s.t.Helper()
	want := m.view()
	look, err := m.s.machine.Look(m.s.record)
	if err != nil {
		m.s.t.Fatalf("%v", err)
	}
	failing, terminating := m.enders(want)
	allEnded := !slices.ContainsFunc(want, func(s jobhost.StepStatus) bool { return !s.Ended() })
	end := m.s.end
	switch {
	case end == nil && (len(failing)+len(terminating) > 0 || allEnded):
		m.s.t.Fatalf("it goes on after %v %v: %s\nwant %v", failing, terminating, m.s.statuses(), want)
	case end == nil || end.Status == jobhost.WorkflowCancelled || end.Failure != nil && end.Step == machine.None:
	case end.Status == jobhost.WorkflowFailed && !slices.Contains(failing, end.Step):
		m.s.t.Fatalf("it failed by %d, not %v: %s", end.Step, failing, m.s.statuses())
	case end.Status == jobhost.WorkflowCompleted && end.Step == machine.None && (!allEnded || len(failing)+len(terminating) > 0),
		end.Status == jobhost.WorkflowCompleted && end.Step != machine.None && !slices.Contains(terminating, end.Step):
		m.s.t.Fatalf("it completed by %d, not %v; all have ended is %v: %s\nwant %v", end.Step, terminating, allEnded, m.s.statuses(), want)
	}
	for _, i := range m.taken { // or didn't: the reference doesn't know when the end came
		if began := slices.Contains(m.s.log, m.s.graph.Steps[i].Name+":running"); look.Step(i) == jobhost.StepCancelled && !began {
			m.signals[i]++
			m.forget(i)
		}
	}
	for i := range want {
		if got := look.Step(i); !m.agree(i, got, want[i]) {
			m.s.t.Fatalf("step %d is %s, not %s\ngot  %s\nwant %v\n%+v", i, got, want[i], m.s.statuses(), want, m.s.graph.Steps)
		}
	}
}

func (m *reference) agree(i int, got, want jobhost.StepStatus) bool {
	node, most := &m.s.graph.Steps[i], m.s.graph.MaxParallel
	switch {
	case got == want:
		return true
	case m.s.end != nil:
		return got == jobhost.StepCancelled
	case want != open:
		return false
	case got == jobhost.StepPending: // for its turn
		return most > 0 && (node.Kind <= machine.Child || node.FallbackWorker) && len(m.s.jobs)+len(m.s.children) >= most
	}
	return got == jobhost.StepRetrying
}

// resume forgets what was begun and not ended when the workflow failed.
func (m *reference) resume(before []jobhost.StepStatus) {
	for i, s := range before {
		if s == jobhost.StepCancelled && m.own[i] != gone && m.replaced[i] != gone {
			m.forget(i)
		}
	}
}

func (m *reference) forget(i int) {
	delete(m.own, i)
	delete(m.replaced, i)
}

// again forgets what is to be done again with a step.
func (m *reference) again(i int) {
	for ; i != machine.None; i = m.s.graph.Steps[i].Fallback {
		m.forget(i)
	}
}
