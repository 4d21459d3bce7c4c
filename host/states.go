package host

import (
	"context"
	"errors"
	"iter"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/taskstate"
)

// newStates joins the store of states to the jobs; nil = there is none.
func (h *Host) newStates() *taskstate.Keeper {
	if h.cfg.States == nil {
		return nil
	}
	cfg := taskstate.Config{Store: h.cfg.States, Jobs: h, Observe: h.cfg.Metrics.States(), Logger: h.cfg.Logger}
	if jobs, ok := h.cfg.Store.(record.Accompanied); !ok || !jobs.Accompanied(h.cfg.States) {
		cfg.Notes = h.cfg.Store // they can't be removed together with their job
	}
	return taskstate.New(cfg)
}

// tendStates starts what removes the states of jobs that are gone.
func (h *Host) tendStates(root *scope.Scope) error {
	if h.states == nil {
		return nil
	}
	return errors.Join(
		h.tender(root, "watchers of removed jobs", h.states.EndRemoved),
		h.tender(root, "states of removed jobs", h.states.DeleteRemoved),
	)
}

// statesGone is called with removed jobs of which there may be states elsewhere.
func (h *Host) statesGone() {
	if h.states != nil {
		h.states.Gone()
	}
}

// keeper returns what keeps the states, while the host runs.
func (h *Host) keeper() (*taskstate.Keeper, error) {
	if _, err := h.now(); err != nil {
		return nil, err
	}
	if h.states == nil {
		return nil, taskstate.ErrNone
	}
	return h.states, nil
}

// StateJobs implements [jobhost.StateKeeper].
func (h *Host) StateJobs(ctx context.Context, filter jobhost.StateJobFilter) (jobhost.StateJobPage, error) {
	k, err := h.keeper()
	if err != nil {
		return jobhost.StateJobPage{}, err
	}
	return k.StateJobs(ctx, filter)
}

// States implements [jobhost.StateKeeper].
func (h *Host) States(ctx context.Context, query jobhost.StateQuery) (jobhost.StateReport, error) {
	k, err := h.keeper()
	if err != nil {
		return jobhost.StateReport{}, err
	}
	return k.States(ctx, query)
}

// SetState implements [jobhost.StateKeeper].
func (h *Host) SetState(ctx context.Context, run string, s jobhost.TaskState, tasks int) (jobhost.TaskState, error) {
	k, err := h.keeper()
	if err != nil {
		return jobhost.TaskState{}, err
	}
	return k.SetState(ctx, run, s, tasks)
}

// WatchStates implements [jobhost.StateKeeper].
func (h *Host) WatchStates(ctx context.Context, query jobhost.StateQuery) iter.Seq2[jobhost.StateEvent, error] {
	k, err := h.keeper()
	if err != nil {
		return func(yield func(jobhost.StateEvent, error) bool) { yield(jobhost.StateEvent{}, err) }
	}
	return k.WatchStates(ctx, query)
}

// DeleteStates implements [jobhost.StateCleaner].
func (h *Host) DeleteStates(ctx context.Context, job, run string) error {
	k, err := h.keeper()
	if err != nil {
		return err
	}
	return k.DeleteStates(ctx, job, run)
}

// CleanStates implements [jobhost.StateCleaner].
func (h *Host) CleanStates(ctx context.Context, c jobhost.StateCleanup) (jobhost.StateCleaned, error) {
	k, err := h.keeper()
	if err != nil {
		return jobhost.StateCleaned{}, err
	}
	return k.CleanStates(ctx, c)
}
