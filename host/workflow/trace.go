package workflow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
)

// Trace tells what happened in a workflow, in the order of time: see [jobhost.WorkflowRunner].
func (e *Engine) Trace(ctx context.Context, id string) ([]jobhost.TraceEntry, error) {
	run, err := e.Workflow(ctx, id)
	if err != nil {
		return nil, err
	}
	t := &tracing{entries: []jobhost.TraceEntry{{Time: run.StartedAt, What: "started", Detail: "workflow " + run.Name}}}
	for i := range run.Steps {
		if t.full() {
			break
		}
		if err := t.step(ctx, e, &run.Steps[i]); err != nil {
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

// tracing gathers entries.
type tracing struct {
	entries []jobhost.TraceEntry
	left    bool // there are more
}

// full reports whether there is room for the end alone, and notes that something is left out.
func (t *tracing) full() bool {
	if len(t.entries) < jobhost.MaxTrace-2 {
		return false
	}
	t.left = true
	return true
}

func (t *tracing) add(entry jobhost.TraceEntry) {
	if !t.full() {
		// The store knows of steps by the millisecond; within one the order is that of the calls.
		entry.Time = entry.Time.Truncate(time.Millisecond)
		t.entries = append(t.entries, entry)
	}
}

// step tells of a step and of the attempts of its job that failed.
func (t *tracing) step(ctx context.Context, e *Engine, s *jobhost.StepRun) error {
	if s.StartedAt != nil {
		detail := s.Reason
		switch {
		case s.Workflow != "":
			detail = "workflow " + s.Workflow
		case s.Tasks > 1:
			detail = fmt.Sprintf("%d tasks", s.Tasks)
		}
		t.add(jobhost.TraceEntry{Time: *s.StartedAt, Step: s.Name, What: "started", Job: s.Job, Detail: detail})
	}
	if s.Job != "" {
		job, err := e.queue.Job(ctx, s.Job)
		if err != nil && jobhost.CodeOf(err) != jobhost.CodeNotFound {
			return err
		}
		for i := range job.Failures {
			f := &job.Failures[i]
			t.add(jobhost.TraceEntry{
				Time: f.EndedAt, Step: s.Name, What: "attempt", Job: s.Job, Task: f.Task, Attempt: f.Attempt,
				Took: jobhost.Duration(f.EndedAt.Sub(f.StartedAt)), Detail: f.Message, Failure: f,
			})
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
		entry.Detail = "by its fallback " + s.Fallback
	}
	t.add(entry)
	return nil
}
