package workflow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/machine"
)

// TraceWorkflow returns what happened in a workflow, ordered by time: see [jobhost.WorkflowRunner].
func (e *Engine) TraceWorkflow(ctx context.Context, id string) ([]jobhost.TraceEntry, error) {
	run, err := e.Workflow(ctx, id)
	if err != nil {
		return nil, err
	}
	def := e.defs.cached(run.Definition) // cached when the workflow was read, if it compiles
	t := &tracing{entries: []jobhost.TraceEntry{{Time: run.StartedAt, What: "started", Detail: "workflow " + run.Name}}}
	for i := range run.Steps {
		if t.full() {
			break
		}
		if err := t.step(ctx, e, id, def, &run.Steps[i]); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(t.entries, func(a, b jobhost.TraceEntry) int { return a.Time.Compare(b.Time) })
	if run.EndedAt != nil {
		t.entries = append(t.entries, jobhost.TraceEntry{
			Time: *run.EndedAt, What: string(run.Status), Took: jobhost.Duration(run.EndedAt.Sub(run.StartedAt)),
			Detail: detailOf(&run), Failure: run.Failure,
		})
	}
	if t.left {
		last := &t.entries[len(t.entries)-1]
		last.Detail += fmt.Sprintf(" (there is more than the %d entries here)", jobhost.MaxTrace)
	}
	return t.entries, nil
}

func detailOf(run *jobhost.WorkflowRun) string {
	switch {
	case run.Reason != "":
		return run.Reason
	case run.Step != "" && run.Status == jobhost.WorkflowFailed:
		return "step " + run.Step + " failed"
	case run.Step != "":
		return "step " + run.Step + " has ended it"
	}
	return ""
}

// tracing collects entries.
type tracing struct {
	entries []jobhost.TraceEntry
	left    bool // some were left out
}

// full reports whether there is only room for the end, and if so notes that something is left
// out.
func (t *tracing) full() bool {
	if len(t.entries) < jobhost.MaxTrace-2 {
		return false
	}
	t.left = true
	return true
}

func (t *tracing) add(entry jobhost.TraceEntry) {
	if !t.full() {
		// The store records steps to the millisecond; within one the order is that of the calls.
		entry.Time = entry.Time.Truncate(time.Millisecond)
		t.entries = append(t.entries, entry)
	}
}

// step adds a step and the failed attempts of its jobs.
func (t *tracing) step(ctx context.Context, e *Engine, id string, def *definition, s *jobhost.StepRun) error {
	if s.StartedAt != nil {
		detail := ""
		switch {
		case s.Workflow != "":
			detail = "workflow " + s.Workflow
		case s.Tasks > 1:
			detail = fmt.Sprintf("%d tasks", s.Tasks)
		case s.EndedAt == nil:
			detail = s.Reason // what it is waiting for
		}
		t.add(jobhost.TraceEntry{Time: *s.StartedAt, Step: s.Name, What: "started", Job: s.Job, Detail: detail})
	}
	if s.Runs > 0 && def != nil {
		if err := t.runs(ctx, e, id, def, s); err != nil {
			return err
		}
	}
	if s.EndedAt == nil {
		return nil
	}
	entry := jobhost.TraceEntry{Time: *s.EndedAt, Step: s.Name, What: string(s.Status), Job: s.Job, Detail: s.Reason, Failure: s.Failure}
	if s.StartedAt != nil {
		entry.Took = jobhost.Duration(s.EndedAt.Sub(*s.StartedAt))
	}
	if s.Fallback != "" && s.Status == jobhost.StepCompleted {
		entry.Detail, entry.Failure = "by its fallback "+s.Fallback, nil
	}
	t.add(entry)
	return nil
}

// runs adds the failed attempts of all runs of a step and of its fallback worker.
func (t *tracing) runs(ctx context.Context, e *Engine, id string, def *definition, s *jobhost.StepRun) error {
	step := def.index[s.Name]
	isFallback := s.Fallback != "" && def.step(step).Fallback == s.Fallback && def.hasFallbackWorker(step)
	if def.step(step).Worker != "" {
		if err := t.attempts(ctx, e, id, def, machine.Run{Step: step}, s.Runs, isFallback); err != nil {
			return err
		}
	}
	if !isFallback {
		return nil
	}
	return t.attempts(ctx, e, id, def, machine.Run{Step: step, Fallback: true}, s.Runs, false)
}

// attempts adds those of the first runs of a step, or with all of every existing run.
func (t *tracing) attempts(ctx context.Context, e *Engine, id string, def *definition, run machine.Run, runs int, all bool) error {
	for n := 1; (n <= runs || all) && !t.full(); n++ {
		run.Number = uint32(n)
		name := def.machine.ID(id, run)
		job, err := e.queue.Job(ctx, name)
		if jobhost.CodeOf(err) == jobhost.CodeNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range job.Failures {
			f := &job.Failures[i]
			t.add(jobhost.TraceEntry{
				Time: f.EndedAt, Step: def.name(run.Step), What: "attempt", Job: name, Task: f.Task, Attempt: f.Attempt,
				Took: jobhost.Duration(f.EndedAt.Sub(f.StartedAt)), Detail: f.Message, Failure: f,
			})
		}
	}
	return nil
}
