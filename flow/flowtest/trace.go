package flowtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// Trace is what happened in a run, in chronological order.
type Trace []jobhost.TraceEntry

// String formats one entry per line, with the time since the first, for people and for
// comparisons with what is expected:
//
//	0s charge started
//	2s charge attempt 1 failed: no route
func (t Trace) String() string {
	var b strings.Builder
	for i := range t {
		e := &t[i]
		fmt.Fprintf(&b, "%v ", jobhost.Duration(e.Time.Sub(t[0].Time)))
		if e.Step == "" {
			b.WriteString("workflow ")
		} else {
			b.WriteString(e.Step + " ")
		}
		switch {
		case e.What == "attempt" && e.Task > 0:
			fmt.Fprintf(&b, "attempt %d of task %d failed", e.Attempt, e.Task)
		case e.What == "attempt":
			fmt.Fprintf(&b, "attempt %d failed", e.Attempt)
		default:
			b.WriteString(e.What)
		}
		if e.Failure != nil {
			b.WriteString(": " + e.Failure.Message)
		}
		if e.Detail != "" {
			b.WriteString(" (" + e.Detail + ")")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (r *Run) tell(e jobhost.TraceEntry) {
	e.Time = r.kit.now
	r.trace = append(r.trace, e)
}

// changed notes where a step stands.
func (r *Run) changed(c *machine.Change) {
	p, now := &r.steps[c.Step], r.kit.now
	before := p.change
	p.change = *c
	if c.Failure != nil {
		p.failure = c.Failure
	}
	if !c.Run.Fallback {
		p.runs = max(p.runs, int(c.Run.Number))
	}
	e := jobhost.TraceEntry{Step: r.def.plan.Workflow.Steps[c.Step].Name, Detail: c.Reason}
	switch {
	case c.Status == jobhost.StepPending && !c.Fallback: // it will run again
		*p = progress{change: *c, failure: p.failure, attempts: p.attempts, runs: p.runs}
		return
	case c.Status == jobhost.StepRunning && c.Fallback && !c.Run.Fallback: // its fallback step tells of itself
		p.ended = time.Time{}
		return
	case c.Status == jobhost.StepRunning && (c.Run != before.Run || p.started.IsZero()):
		e.What = "started"
		if c.Run.Fallback {
			e.Detail = "its fallback, worker " + r.def.plan.Workflow.Steps[c.Step].Fallback
		} else {
			p.started = now
		}
	case c.Status.Ended():
		e.What = string(c.Status)
		if p.started.IsZero() && c.Status != jobhost.StepSkipped {
			p.started = now
		}
		p.ended = now
		if !p.started.IsZero() {
			e.Took = jobhost.Duration(now.Sub(p.started))
		}
		if c.Status != jobhost.StepCompleted {
			e.Failure = c.Failure
		}
	default:
		p.ended = time.Time{}
		return
	}
	r.tell(e)
}
