package host

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/object"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/schedule"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/host/workflow"
)

// running is a host that runs: the pieces that it is made of, which answer most of what can be
// asked of it, and methods for what needs more than one of them.
type running struct {
	host *Host
	root *scope.Scope

	*queue.Queue
	*workflow.Engine
	*fiber.Registry
	jobhost.Scheduler // scheduler, or [schedule.None]
	states            // of the host, or [taskstate.None]

	objects   *object.Keeper      // nil when there are no payload stores
	scheduler *schedule.Scheduler // nil when the store keeps no schedules
	current   atomic.Pointer[map[string]*worker]
}

// states is what [taskstate.Keeper] answers.
type states interface {
	jobhost.StateKeeper
	jobhost.StateCleaner
	WatchStatesWithin(ctx context.Context, query jobhost.StateQuery, room func(bytes int) error) iter.Seq2[jobhost.StateEvent, error]
}

var (
	_ jobhost.Server       = (*running)(nil)
	_ jobhost.ResultLister = (*running)(nil)
)

// workers returns the workers by name. A reload makes another map.
func (r *running) workers() map[string]*worker { return *r.current.Load() }

// join adds the pieces that a host may lack.
func (r *running) join(keeper *taskstate.Keeper, scheduler *schedule.Scheduler) {
	r.states, r.Scheduler = taskstate.None{}, schedule.None{}
	if keeper != nil {
		r.states = keeper
	}
	if r.scheduler = scheduler; scheduler != nil {
		r.Scheduler = scheduler
	}
}

// Server returns what answers all that can be asked of the host. Before the host runs the error
// is one with code unavailable. After a stop, what was returned still answers questions until
// the store is closed.
func (h *Host) Server() (jobhost.Server, error) {
	r, err := h.now()
	if err != nil {
		return nil, err
	}
	return r, nil
}

// now returns what is running; after a stop the queue still answers questions
// until the store is closed.
func (h *Host) now() (*running, error) {
	if r := h.running.Load(); r != nil {
		return r, nil
	}
	return nil, h.Ready()
}

// Submit implements [jobhost.Submitter].
func (r *running) Submit(ctx context.Context, spec jobhost.Spec) (jobhost.Receipt, error) {
	receipt, err := r.Queue.Submit(ctx, spec)
	r.host.countRefusal(err)
	return receipt, err
}

// SubmitBatch implements [jobhost.Submitter].
func (r *running) SubmitBatch(ctx context.Context, specs []jobhost.Spec) ([]jobhost.Submitted, error) {
	answers, err := r.Queue.SubmitBatch(ctx, specs)
	for i := range answers {
		r.host.countRefusal(answers[i].Err)
	}
	return answers, err
}

// RunSchedule implements [jobhost.Scheduler].
func (r *running) RunSchedule(ctx context.Context, name string) (jobhost.Receipt, error) {
	receipt, err := r.Scheduler.RunSchedule(ctx, name)
	r.host.countRefusal(err)
	return receipt, err
}

// StartWorkflow implements [jobhost.WorkflowRunner].
func (r *running) StartWorkflow(ctx context.Context, s jobhost.WorkflowStart) (jobhost.WorkflowReceipt, error) {
	receipt, err := r.Engine.StartWorkflow(ctx, s)
	r.host.countRefusal(err)
	return receipt, err
}
