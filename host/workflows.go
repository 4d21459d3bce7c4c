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
		if defs, err = h.running.Load().Definitions(context.Background()); err != nil {
			return err
		}
	}
	update.defined, err = workflow.Compile(defs, workersForPlans(update.Workers), h.cfg.Workflows.MaxNesting)
	return err
}

// workersForPlans are the workers that steps can name.
func workersForPlans(workers []Worker) map[string]plan.Worker {
	named := make(map[string]plan.Worker, len(workers))
	for i := range workers {
		named[workers[i].Name] = plan.Worker{}
	}
	return named
}

// WaitWorkflow implements [jobhost.WorkflowRunner].
func (r *running) WaitWorkflow(ctx context.Context, id string) (jobhost.WorkflowRun, error) {
	for {
		run, err := r.waitWorkflow(ctx, id)
		if !errors.Is(err, hub.ErrSlow) {
			return run, err
		}
	}
}

func (r *running) waitWorkflow(ctx context.Context, id string) (jobhost.WorkflowRun, error) {
	// Subscribed before it is looked at, so that its end is not missed.
	events := r.host.hub.Subscribe(hub.Query{Key: id})
	defer events.Close()
	for {
		run, err := r.Workflow(ctx, id)
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
