package taskstate

import (
	"context"
	"iter"

	"github.com/jobhost/jobhost"
)

// None stands for the [Keeper] of a host that keeps no states: it answers [ErrNone].
type None struct{}

var (
	_ jobhost.StateKeeper  = None{}
	_ jobhost.StateCleaner = None{}
)

// StateJobs implements [jobhost.StateKeeper].
func (None) StateJobs(context.Context, jobhost.StateJobFilter) (jobhost.StateJobPage, error) {
	return jobhost.StateJobPage{}, ErrNone
}

// States implements [jobhost.StateKeeper].
func (None) States(context.Context, jobhost.StateQuery) (jobhost.StateReport, error) {
	return jobhost.StateReport{}, ErrNone
}

// SetState implements [jobhost.StateKeeper].
func (None) SetState(context.Context, string, jobhost.TaskState, int) (jobhost.TaskState, error) {
	return jobhost.TaskState{}, ErrNone
}

// WatchStates implements [jobhost.StateKeeper].
func (None) WatchStates(context.Context, jobhost.StateQuery) iter.Seq2[jobhost.StateEvent, error] {
	return func(yield func(jobhost.StateEvent, error) bool) { yield(jobhost.StateEvent{}, ErrNone) }
}

// WatchStatesWithin answers as WatchStates does.
func (n None) WatchStatesWithin(ctx context.Context, query jobhost.StateQuery, _ func(int) error) iter.Seq2[jobhost.StateEvent, error] {
	return n.WatchStates(ctx, query)
}

// DeleteStates implements [jobhost.StateCleaner].
func (None) DeleteStates(context.Context, string, string) error { return ErrNone }

// CleanStates implements [jobhost.StateCleaner].
func (None) CleanStates(context.Context, jobhost.StateCleanup) (jobhost.StateCleaned, error) {
	return jobhost.StateCleaned{}, ErrNone
}
