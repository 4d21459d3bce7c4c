package host

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/taskstate"
)

// newStates joins the store of states to the jobs; nil = there is none.
func (h *Host) newStates() *taskstate.Keeper {
	if h.cfg.States == nil {
		return nil
	}
	cfg := taskstate.Config{Store: h.cfg.States, Jobs: unready{h}, Observe: h.cfg.Metrics.States(), Logger: h.cfg.Logger}
	if jobs, ok := h.cfg.Store.(record.Accompanied); !ok || !jobs.Accompanied(h.cfg.States) {
		cfg.Notes = h.cfg.Store // they can't be removed together with their job
	}
	return taskstate.New(cfg)
}

// startStatesUpkeep starts what removes the states of jobs that are gone.
func (r *running) startStatesUpkeep() error {
	states := r.host.states
	if states == nil {
		return nil
	}
	return errors.Join(
		r.startBackground("watchers of removed jobs", states.EndRemoved),
		r.startBackground("states of removed jobs", states.DeleteRemoved),
	)
}

// statesGone is called with removed jobs of which there may be states elsewhere.
func (h *Host) statesGone() {
	if h.states != nil {
		h.states.Gone()
	}
}

// unready answers for a host that may not run yet.
type unready struct{ host *Host }

// Job implements [taskstate.Jobs].
func (u unready) Job(ctx context.Context, id string) (jobhost.Job, error) {
	r, err := u.host.now()
	if err != nil {
		return jobhost.Job{}, err
	}
	return r.Job(ctx, id)
}
