package pool

import (
	"context"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/state"
)

var _ hostcall.States = (*slot)(nil)

// guestStates returns what the running attempt reports and sees. It is called
// only if the attempt does either.
func (s *slot) guestStates(at *hostcall.Attempt) (*taskstate.Guest, error) {
	if s.pool.cfg.States == nil {
		return nil, taskstate.ErrNone
	}
	if s.states == nil {
		s.states = s.pool.cfg.States.Guest(state.Job{ID: at.Job}, at.Task, at.Tasks)
	}
	return s.states, nil
}

// closeStates releases the states that the attempt has used.
func (s *slot) closeStates() {
	if s.states != nil {
		s.states.Close()
		s.states = nil
	}
}

// SetState implements [hostcall.States].
func (s *slot) SetState(ctx context.Context, at *hostcall.Attempt, st jobhost.TaskState) error {
	states, err := s.guestStates(at)
	if err != nil {
		return err
	}
	return states.Set(ctx, st)
}

// State implements [hostcall.States].
func (s *slot) State(ctx context.Context, at *hostcall.Attempt, q hostcall.StateQuery) (jobhost.TaskState, error) {
	states, err := s.guestStates(at)
	if err != nil {
		return jobhost.TaskState{}, err
	}
	return states.State(ctx, q)
}

// WatchState implements [hostcall.States].
func (s *slot) WatchState(ctx context.Context, at *hostcall.Attempt, q hostcall.StateQuery) (hostcall.Stream, error) {
	states, err := s.guestStates(at)
	if err != nil {
		return nil, err
	}
	return states.Watch(ctx, q)
}

// WorkerOf implements [hostcall.States].
func (s *slot) WorkerOf(ctx context.Context, job string) (string, error) {
	if s.pool.cfg.States == nil {
		return "", taskstate.ErrNone
	}
	return s.pool.cfg.States.WorkerOf(ctx, job)
}
