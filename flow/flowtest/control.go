package flowtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// Advance performs everything that happens within a time: see [Kit.Advance].
func (r *Run) Advance(d time.Duration) {
	r.kit.t.Helper()
	r.kit.Advance(d)
}

// Signal sends a signal, and performs what happens at once. The payload is given like an input: see
// [Kit.Start]. It fails the test if no step of the workflow waits for such signals, or the workflow has
// ended. When called from a [Func], the signal arrives after the function has returned.
func (r *Run) Signal(name string, payload any) {
	r.kit.t.Helper()
	data := r.kit.encode(payload)
	r.request("signal "+name, machine.Event{What: machine.Signalled, Signal: name, Payload: data})
}

// Cancel cancels the workflow, with the same timing as [Run.Signal]. A workflow that has ended is
// not affected.
func (r *Run) Cancel(reason string) {
	r.kit.t.Helper()
	r.request("cancel", machine.Event{What: machine.Cancelled, Reason: reason})
}

// Retry runs a failed step again, by default (empty name) the one that made the workflow
// fail, and the workflow continues from there. It fails the test if there is none.
func (r *Run) Retry(step string) {
	r.kit.t.Helper()
	e := machine.Event{What: machine.Retry, Step: machine.None}
	if step != "" {
		if e.Step = r.index(step); e.Step == machine.None {
			return
		}
	}
	r.request("retry", e)
}

// request is something that a test wants to happen now.
func (r *Run) request(what string, e machine.Event) {
	r.kit.t.Helper()
	r.kit.soon(func() {
		if refused := r.try(e); refused != nil {
			r.kit.fatalf("%s of workflow %s: %v", what, r.Name(), refused)
		}
	})
	r.kit.settle()
}

// index returns the index of a step; a missing step fails the test.
func (r *Run) index(name string) int {
	r.kit.t.Helper()
	if r.def != nil {
		if s, found := r.def.plan.Step(name); found {
			return s.Source
		}
	}
	r.kit.fatalf("workflow %s has no step %q", r.Name(), name)
	return machine.None
}

// Child returns the run of a workflow that is a step: the last, if there were several. It
// fails the test if the step is not a workflow, or has not begun.
func (r *Run) Child(step string) *Run {
	r.kit.t.Helper()
	var last *Run
	if i := r.index(step); i != machine.None {
		for of, child := range r.children {
			if of.Step == i && (last == nil || of.Number > last.of.Number) {
				last = child
			}
		}
	}
	if last == nil {
		r.kit.fatalf("step %s of workflow %s has not begun a workflow", step, r.Name())
		return &Run{kit: r.kit}
	}
	return last
}

// Wait performs everything until the workflow has ended, and returns the result. If nothing
// can happen any more, it fails the test and reports which steps wait for what. A signal
// that is awaited with a timeout doesn't arrive: the time passes.
func (r *Run) Wait() *Result {
	r.kit.t.Helper()
	if r.kit.busy {
		r.kit.fatalf("a function can't wait for what happens after it")
	}
	for r.end == nil && !r.kit.failed {
		next := r.kit.upcoming()
		if next == nil {
			r.kit.fatalf("nothing can happen any more in workflow %s, and it has not ended:%s", r.Name(), r.waiting())
			break
		}
		r.kit.happen(next.at)
	}
	r.kit.settle()
	return r.Look()
}

// waiting describes what steps wait for.
func (r *Run) waiting() string {
	look := r.look()
	if look == nil {
		return ""
	}
	var b strings.Builder
	steps := r.def.plan.Workflow.Steps
	for i := range steps {
		status := look.Step(i)
		if status.Ended() {
			continue
		}
		fmt.Fprintf(&b, "\n\tstep %s is %s", steps[i].Name, status)
		var open []string
		for _, need := range steps[i].Needs {
			if s, found := r.def.plan.Step(need); found && !look.Step(s.Source).Ended() {
				open = append(open, need)
			}
		}
		switch reason := r.steps[i].change.Reason; {
		case status == jobhost.StepPending && len(open) > 0:
			b.WriteString(": it needs " + strings.Join(open, ", "))
		case reason != "":
			b.WriteString(": it " + reason)
		}
		for of, child := range r.children {
			if of == look.Run(i) && child.end == nil {
				fmt.Fprintf(&b, ": in workflow %s%s", child.Name(), strings.ReplaceAll(child.waiting(), "\n", "\n\t"))
			}
		}
	}
	return b.String()
}

func (r *Run) look() *machine.Look {
	if r.def == nil || r.record == nil {
		return nil
	}
	look, err := r.def.machine.Look(r.record)
	if err != nil {
		r.kit.fatalf("workflow %s: %v", r.Name(), err)
		return nil
	}
	return look
}
