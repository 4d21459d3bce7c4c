package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// fakeStates keep the states of a fake server as hosts do, but with its clock.
type fakeStates struct {
	*taskstate.Keeper
	store *statetest.Memory
}

func newFakeStates(jobs taskstate.Jobs) fakeStates {
	store := statetest.NewMemory()
	store.Now = func() time.Time { return testTime }
	return fakeStates{taskstate.New(taskstate.Config{Store: store, Jobs: jobs, Logger: slog.New(slog.DiscardHandler)}), store}
}

// CleanStates is 60 days later.
func (s fakeStates) CleanStates(ctx context.Context, c jobhost.StateCleanup) (jobhost.StateCleaned, error) {
	return state.Clean(ctx, s.store, c, testTime.AddDate(0, 0, 60), nil)
}
