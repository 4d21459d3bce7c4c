package host

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hub"
	"github.com/jobhost/jobhost/host/workflow"
	"github.com/jobhost/jobhost/host/workflow/machine"
	"github.com/jobhost/jobhost/host/workflow/plan"
)

// newEngine returns what runs workflows; it is opened with the queue.
func (h *Host) newEngine() (*workflow.Engine, error) {
	e := workflow.New(h.cfg.Store, workflow.Config{
		MaxOpen: h.cfg.Workflows.MaxOpen, MaxNesting: h.cfg.Workflows.MaxNesting, Retention: *h.cfg.Workflows.Retention,
		Bounds:   machine.Bounds{Tasks: h.cfg.Workflows.MaxAtOnce, Bytes: h.cfg.Workflows.MaxBytesAtOnce},
		MaxInput: h.cfg.MaxPayload, Publish: h.publish, Observer: h.cfg.Metrics.Workflows(), Logger: h.cfg.Logger,
	})
	defs, err := workflow.Compile(h.cfg.Workflows.Definitions, workersForPlans(h.cfg.Workers), h.cfg.Workflows.MaxNesting)
	e.Define(defs)
	return e, err
}

// redefine compiles what is to be started by name after a reload; with nil definitions those stay.
func (h *Host) redefine(update *Update) (err error) {
	defs := update.Workflows
	if defs == nil {
		defs = h.running.Load().flows.Definitions()
	}
	update.defined, err = workflow.Compile(defs, workersForPlans(update.Workers), h.cfg.Workflows.MaxNesting)
	return err
}

// workersForPlans are the workers that steps can name.
func workersForPlans(workers []Worker) map[string]plan.Worker {
	named := make(map[string]plan.Worker, len(workers))
	for i := range workers {
		if !workers[i].own() {
			named[workers[i].Name] = plan.Worker{}
		}
	}
	return named
}

// engine returns what runs workflows, while the host runs.
func (h *Host) engine() (*workflow.Engine, error) {
	r, err := h.now()
	if err != nil {
		return nil, err
	}
	return r.flows, nil
}

// StartWorkflow implements [jobhost.WorkflowRunner].
func (h *Host) StartWorkflow(ctx context.Context, s jobhost.WorkflowStart) (jobhost.WorkflowReceipt, error) {
	e, err := h.engine()
	if err != nil {
		return jobhost.WorkflowReceipt{}, err
	}
	receipt, err := e.Start(ctx, s)
	h.countRefusal(err)
	return receipt, err
}

// Workflow implements [jobhost.WorkflowRunner].
func (h *Host) Workflow(ctx context.Context, id string) (jobhost.WorkflowRun, error) {
	e, err := h.engine()
	if err != nil {
		return jobhost.WorkflowRun{}, err
	}
	return e.Workflow(ctx, id)
}

// Workflows implements [jobhost.WorkflowRunner].
func (h *Host) Workflows(ctx context.Context, filter jobhost.WorkflowFilter) (jobhost.WorkflowPage, error) {
	e, err := h.engine()
	if err != nil {
		return jobhost.WorkflowPage{}, err
	}
	return e.Workflows(ctx, filter)
}

// OpenWorkflowOutput implements [jobhost.WorkflowRunner].
func (h *Host) OpenWorkflowOutput(ctx context.Context, id string) (jobhost.Content, error) {
	e, err := h.engine()
	if err != nil {
		return jobhost.Content{}, err
	}
	return e.OpenOutput(ctx, id)
}

// TraceWorkflow implements [jobhost.WorkflowRunner].
func (h *Host) TraceWorkflow(ctx context.Context, id string) ([]jobhost.TraceEntry, error) {
	e, err := h.engine()
	if err != nil {
		return nil, err
	}
	return e.Trace(ctx, id)
}

// WaitWorkflow implements [jobhost.WorkflowRunner].
func (h *Host) WaitWorkflow(ctx context.Context, id string) (jobhost.WorkflowRun, error) {
	for {
		run, err := h.waitWorkflow(ctx, id)
		if !errors.Is(err, hub.ErrSlow) {
			return run, err
		}
	}
}

func (h *Host) waitWorkflow(ctx context.Context, id string) (jobhost.WorkflowRun, error) {
	// Subscribed before it is looked at, so that its end is not missed.
	events := h.hub.Subscribe(hub.Query{Key: id})
	defer events.Close()
	for {
		run, err := h.Workflow(ctx, id)
		if err != nil || run.Status.Ended() {
			return run, err
		}
		for {
			item, err := events.Next(ctx)
			if err != nil {
				return run, err
			}
			if item.Value.Kind == jobhost.EventWorkflowEnded {
				break
			}
		}
	}
}

// SignalWorkflow implements [jobhost.WorkflowController].
func (h *Host) SignalWorkflow(ctx context.Context, id string, signal jobhost.WorkflowSignal) error {
	e, err := h.engine()
	if err != nil {
		return err
	}
	return e.Signal(ctx, id, signal)
}

// CancelWorkflow implements [jobhost.WorkflowController].
func (h *Host) CancelWorkflow(ctx context.Context, id, reason string) (jobhost.WorkflowRun, error) {
	e, err := h.engine()
	if err != nil {
		return jobhost.WorkflowRun{}, err
	}
	if err := e.Cancel(ctx, id, reason); err != nil {
		return jobhost.WorkflowRun{}, err
	}
	return e.Workflow(ctx, id)
}

// RetryWorkflow implements [jobhost.WorkflowController].
func (h *Host) RetryWorkflow(ctx context.Context, id, step string) (jobhost.WorkflowRun, error) {
	e, err := h.engine()
	if err != nil {
		return jobhost.WorkflowRun{}, err
	}
	if err := e.Retry(ctx, id, step); err != nil {
		return jobhost.WorkflowRun{}, err
	}
	return e.Workflow(ctx, id)
}

// DeleteWorkflow implements [jobhost.WorkflowController].
func (h *Host) DeleteWorkflow(ctx context.Context, id string) error {
	e, err := h.engine()
	if err != nil {
		return err
	}
	return e.Delete(ctx, id)
}

// Definitions implements [jobhost.WorkflowDefiner].
func (h *Host) Definitions(context.Context) ([]jobhost.Workflow, error) {
	e, err := h.engine()
	if err != nil {
		return nil, err
	}
	return e.Definitions(), nil
}

// Definition implements [jobhost.WorkflowDefiner].
func (h *Host) Definition(_ context.Context, name string) (jobhost.Workflow, error) {
	e, err := h.engine()
	if err != nil {
		return jobhost.Workflow{}, err
	}
	return e.Definition(name)
}

// DefinitionOf implements [jobhost.WorkflowDefiner].
func (h *Host) DefinitionOf(ctx context.Context, id string) (jobhost.Workflow, error) {
	e, err := h.engine()
	if err != nil {
		return jobhost.Workflow{}, err
	}
	return e.DefinitionOf(ctx, id)
}

// CheckWorkflow implements [jobhost.WorkflowDefiner].
func (h *Host) CheckWorkflow(_ context.Context, w jobhost.Workflow) error {
	e, err := h.engine()
	if err != nil {
		return err
	}
	return e.Check(w)
}
