package hosttest

import (
	"context"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/course"
)

// SignalWorkflow implements [jobhost.WorkflowController].
func (f *Fake) SignalWorkflow(_ context.Context, id string, signal jobhost.WorkflowSignal) error {
	if err := signal.Check(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w, err := f.findWorkflowLocked(id)
	if err != nil {
		return err
	}
	return f.requestLocked(w, course.Event{What: course.Signalled, Signal: signal.Name, ID: signal.ID, Payload: signal.Payload})
}

// CancelWorkflow implements [jobhost.WorkflowController].
func (f *Fake) CancelWorkflow(_ context.Context, id, reason string) (jobhost.WorkflowRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, err := f.findWorkflowLocked(id)
	if err != nil {
		return jobhost.WorkflowRun{}, err
	}
	if s := w.status(); s.Ended() && s != jobhost.WorkflowCancelled {
		return jobhost.WorkflowRun{}, problem(jobhost.CodeConflict, "", "workflow %s has ended: it is %s", id, s)
	}
	err = f.requestLocked(w, course.Event{What: course.Cancelled, Reason: reason})
	return w.describe(true), err
}

// RetryWorkflow implements [jobhost.WorkflowController].
func (f *Fake) RetryWorkflow(_ context.Context, id, step string) (jobhost.WorkflowRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, err := f.findWorkflowLocked(id)
	if err != nil {
		return jobhost.WorkflowRun{}, err
	}
	e := course.Event{What: course.Retry, Step: course.None}
	if step != "" {
		if e.Step = slices.IndexFunc(w.steps, func(s fakeStep) bool { return s.Name == step }); e.Step < 0 {
			return jobhost.WorkflowRun{}, problem(jobhost.CodeNotFound, "step", "workflow %s has no step %q", id, step)
		}
	}
	if err := f.requestLocked(w, e); err != nil {
		return jobhost.WorkflowRun{}, err
	}
	return w.describe(true), nil
}

// DeleteWorkflow implements [jobhost.WorkflowController].
func (f *Fake) DeleteWorkflow(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, err := f.findWorkflowLocked(id)
	switch {
	case err != nil:
		return err
	case w.ended == nil:
		return problem(jobhost.CodeConflict, "", "workflow %s is running", id)
	case w.parent != nil:
		return problem(jobhost.CodeConflict, "", "workflow %s is a step of %s", id, w.parent.id)
	}
	f.removeWorkflowLocked(w)
	return nil
}

// removeWorkflowLocked removes a workflow, with its jobs and the workflows that are its steps.
func (f *Fake) removeWorkflowLocked(w *fakeWorkflow) {
	delete(f.workflows.byID, w.id)
	f.workflows.order = slices.DeleteFunc(f.workflows.order, func(other *fakeWorkflow) bool { return other == w })
	f.order = slices.DeleteFunc(f.order, func(job *fakeJob) bool {
		if job.workflow == w {
			delete(f.jobs, job.spec.ID)
		}
		return job.workflow == w
	})
	for _, id := range w.children {
		if child := f.workflows.byID[id]; child != nil {
			f.removeWorkflowLocked(child)
		}
	}
}
