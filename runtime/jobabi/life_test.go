package jobabi_test

import (
	"context"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// TestLife: what a host call waits with belongs to the attempt. A context that were derived from the
// caller's would ask that one when its time is over, while it serves the next attempt.
func TestLife(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.frame.at.Services = &oneState{}
	c.frame.at.Deadline = time.Now().Add(time.Hour) // so that there is a context with a deadline
	watched := &watchedFrame{frame: c.frame}
	args := map[string][]uint64{"state_set": {0, 1, 1, 0, 0, 0, 0}, "state_get": {0, 0, 0, 0, 0}, "state_watch": {0, 0, 0}}
	for name, args := range args {
		c.module.Memory().WriteByte(0, 'a')
		if _, err := c.module.ExportedFunction(name).Call(watched, args...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if watched.asked != 0 {
			t.Errorf("%s derived a context from its caller", name)
		}
		watched.asked = 0
	}
	if calls := c.frame.at.Services.(*oneState).calls; calls != len(args) {
		t.Errorf("%d of %d calls came through", calls, len(args))
	}
}

// watchedFrame counts how often its end is asked for.
type watchedFrame struct {
	*frame
	asked int
}

func (f *watchedFrame) Done() <-chan struct{} {
	f.asked++
	return f.frame.Done()
}

// oneState keeps any state and has one.
type oneState struct {
	services
	calls int
}

func (s *oneState) SetState(context.Context, *hostcall.Attempt, jobhost.TaskState) error {
	s.calls++
	return nil
}

func (s *oneState) State(context.Context, *hostcall.Attempt, hostcall.StateQuery) (jobhost.TaskState, error) {
	s.calls++
	return jobhost.TaskState{}, nil
}

func (s *oneState) WatchState(context.Context, *hostcall.Attempt, hostcall.StateQuery) (hostcall.Stream, error) {
	s.calls++
	return nil, &jobhost.Error{Code: jobhost.CodeNotFound}
}

func (s *oneState) WorkerOf(context.Context, string) (string, error) { return "w", nil }
