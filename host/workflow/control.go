package workflow

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/workflow/machine"
	"github.com/jobhost/jobhost/internal/text"
)

// ask applies a requested event to a workflow. judge may refuse it.
func (e *Engine) ask(ctx context.Context, id string, judge func(*row, *machine.Event) *jobhost.Error, event machine.Event) error {
	if err := jobhost.CheckAnyWorkflowID(id); err != nil {
		return err
	}
	if err := e.prepare(ctx, id); err != nil {
		return err
	}
	t := &transition{engine: e, at: e.now()}
	t.first = func(t *transition, tx record.WorkflowTx, _ record.End) (*happening, error) {
		w, err := tx.WorkflowByID(id)
		switch {
		case w == nil:
			t.refused = notFound(id)
			return nil, err
		case err != nil:
			return nil, t.breakDown(tx, w, err)
		}
		r, err := t.ready(tx, w)
		switch {
		case err != nil:
			return nil, err
		case r == nil: // it has broken down, which was reported
			return nil, nil
		}
		h := &happening{key: w.Key, event: event}
		h.event.At = t.at.Time()
		if t.refused = judge(r, &h.event); t.refused != nil {
			return nil, nil //nolint:nilerr // a refusal is an answer
		}
		return h, nil
	}
	if err := e.queue.Advance(ctx, t); err != nil {
		return err
	}
	if t.refused != nil {
		return t.refused
	}
	return nil
}

// prepare compiles a workflow's definition, so that the store's writer doesn't have to. If it is damaged or
// no longer compiles, the transition ends the workflow.
func (e *Engine) prepare(ctx context.Context, id string) error {
	return e.store.ViewWorkflows(ctx, func(v record.WorkflowView) error {
		w, err := v.WorkflowByID(id)
		if w == nil {
			return err
		}
		_, _ = e.definition(v, w.Definition)
		return nil
	})
}

// definition returns a definition by its hash.
func (e *Engine) definition(v record.WorkflowView, hash string) (*definition, error) {
	if d := e.defs.cached(hash); d != nil {
		return d, nil
	}
	text, err := v.Definition(hash)
	if err != nil {
		return nil, err
	}
	return e.defs.compile(hash, text)
}

// SignalWorkflow sends a signal to a workflow: see [jobhost.WorkflowController].
func (e *Engine) SignalWorkflow(ctx context.Context, id string, s jobhost.WorkflowSignal) error {
	if err := s.Check(); err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	if s.Payload == nil {
		s.Payload = []byte("null")
	}
	err := e.ask(ctx, id, anyway, machine.Event{What: machine.Signalled, Signal: s.Name, ID: s.ID, Payload: s.Payload})
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	return nil
}

func anyway(*row, *machine.Event) *jobhost.Error { return nil }

// CancelWorkflow ends a workflow: see [jobhost.WorkflowController].
func (e *Engine) CancelWorkflow(ctx context.Context, id, reason string) (jobhost.WorkflowRun, error) {
	if reason == "" {
		reason = reasonCancelled
	}
	if len(reason) > jobhost.MaxLabelBytes {
		return jobhost.WorkflowRun{}, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "reason", Message: fmt.Sprintf("a reason of %d bytes is longer than %d", len(reason), jobhost.MaxLabelBytes)}
	}
	judge := func(r *row, _ *machine.Event) *jobhost.Error {
		if r.Status == record.WorkflowRunning || r.Status == record.WorkflowCancelled {
			return nil
		}
		return &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf("workflow %s has ended: it is %s", id, statusOf(r.Status))}
	}
	if err := e.ask(ctx, id, judge, machine.Event{What: machine.Cancelled, Reason: reason}); err != nil {
		return jobhost.WorkflowRun{}, fmt.Errorf("cancel workflow: %w", err)
	}
	return e.Workflow(ctx, id)
}

// RetryWorkflow runs a step again: see [jobhost.WorkflowController].
func (e *Engine) RetryWorkflow(ctx context.Context, id, step string) (jobhost.WorkflowRun, error) {
	judge := func(r *row, event *machine.Event) *jobhost.Error {
		if step == "" {
			return nil
		}
		i, found := r.def.index[step]
		if event.Step = i; found {
			return nil
		}
		refusal := &jobhost.Error{
			Code: jobhost.CodeNotFound, Field: "step", Message: fmt.Sprintf("workflow %s has no step %q", r.Name, step),
		}
		names := make([]string, 0, len(r.def.index))
		for name := range r.def.index {
			names = append(names, name)
		}
		if near := text.Nearest(step, names); near != "" {
			refusal.Hint = "did you mean " + near + "?"
		}
		return refusal
	}
	if err := e.ask(ctx, id, judge, machine.Event{What: machine.Retry, Step: machine.None}); err != nil {
		return jobhost.WorkflowRun{}, fmt.Errorf("retry workflow: %w", err)
	}
	return e.Workflow(ctx, id)
}

// DeleteWorkflow removes a workflow that has ended: see [jobhost.WorkflowController].
func (e *Engine) DeleteWorkflow(ctx context.Context, id string) error {
	if err := e.queue.RemoveWorkflow(ctx, id); err != nil {
		return fmt.Errorf("delete workflow: %w", err)
	}
	return nil
}
