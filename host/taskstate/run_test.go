package taskstate_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

func at(seconds int) *time.Time {
	t := epoch.Add(time.Duration(seconds) * time.Second)
	return &t
}

// TestRunOfJob: what the queue knows about tasks is shown as states.
func TestRunOfJob(t *testing.T) {
	t.Parallel()
	failure := jobhost.Failure{Task: 0, Attempt: 1, Code: "boom", Message: "it broke", EndedAt: *at(7)}
	for _, tt := range []struct {
		name     string
		task     jobhost.Task
		failures []jobhost.Failure
		want     *state.State // nil = none
	}{
		{name: "never begun", task: jobhost.Task{State: jobhost.Ready}},
		{
			name: "running", task: jobhost.Task{State: jobhost.Running, Attempt: 1, Course: 1, StartedAt: at(1)},
			want: &state.State{Status: state.StatusStarted, Message: "🟢 Started", Version: 1, Timestamp: *at(1)},
		},
		{
			name: "running again", task: jobhost.Task{State: jobhost.Running, Attempt: 2, Course: 3, StartedAt: at(9)}, failures: []jobhost.Failure{failure},
			want: &state.State{Status: state.StatusStarted, Message: "🟢 Started, attempt 2", Version: 3, Timestamp: *at(9)},
		},
		{
			name: "succeeded", task: jobhost.Task{State: jobhost.Succeeded, Attempt: 1, Course: 2, StartedAt: at(1), EndedAt: at(2)},
			want: &state.State{Status: state.StatusFinished, Message: "⚫ Finished", Version: 2, Timestamp: *at(2)},
		},
		{
			name: "waits after a failure", task: jobhost.Task{State: jobhost.Retrying, Attempt: 1, Course: 2, StartedAt: at(1)}, failures: []jobhost.Failure{failure},
			want: &state.State{Status: state.StatusNotStarted, Message: "🟡 attempt 1 failed: boom: it broke", Version: 2, Timestamp: *at(7)},
		},
		{
			name: "dead", task: jobhost.Task{State: jobhost.Dead, Attempt: 1, Course: 2, StartedAt: at(1), EndedAt: at(7)}, failures: []jobhost.Failure{failure},
			want: &state.State{Status: state.StatusError, Message: "🔴 boom: it broke", Version: 2, Timestamp: *at(7)},
		},
		{
			name: "cancelled before it began", task: jobhost.Task{State: jobhost.Cancelled, Course: 2, EndedAt: at(3)},
			want: &state.State{Status: state.StatusError, Message: "🔴 cancelled", Version: 2, Timestamp: *at(3)},
		},
		{
			name: "put back", task: jobhost.Task{State: jobhost.Ready, Course: 2, StartedAt: at(1)},
			want: &state.State{Status: state.StatusNotStarted, Message: "Waits to run again", Version: 2, Timestamp: *at(1)},
		},
		{
			name: "revived", task: jobhost.Task{State: jobhost.Ready, Course: 4, StartedAt: at(1)}, failures: []jobhost.Failure{failure},
			want: &state.State{Status: state.StatusNotStarted, Message: "Waits to run again", Version: 4, Timestamp: *at(1)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := job("a", 1)
			j.Tasks[0], j.Failures = tt.task, tt.failures
			s := newSetup(t, j)
			var want []state.State
			if tt.want != nil {
				tt.want.JobID, tt.want.Tag, tt.want.SchemaVersion = "a", jobhost.TagRun, 1
				want = append(want, *tt.want)
			}
			got := s.report(jobhost.StateQuery{Job: "a"}).States
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(state.State{}, "EventID"), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRunOfEvents: a watcher sees the course of a task once each, and nothing of
// what is older than what it knows.
func TestRunOfEvents(t *testing.T) {
	t.Parallel()
	s := newSetup(t, job("a", 2))
	watcher := s.watch(jobhost.StateQuery{Job: "a"})
	watcher.want(sentinel())
	failure := &jobhost.Failure{Attempt: 1, Code: "boom", Message: "it broke"}
	for _, e := range []jobhost.Event{
		{Kind: jobhost.EventStarted, Task: 1, Attempt: 1, Course: 1},
		{Kind: jobhost.EventRetrying, Task: 1, Attempt: 1, Course: 2, Failure: failure},
		{Kind: jobhost.EventRetrying, Task: 1, Attempt: 1, Course: 2, Failure: failure}, // again
		{Kind: jobhost.EventStarted, Task: 1, Attempt: 2, Course: 3},
		{Kind: jobhost.EventStarted, Task: 1, Attempt: 1, Course: 1}, // late
		{Kind: jobhost.EventProgress, Task: 1, Attempt: 2},           // no change of the course
		{Kind: jobhost.EventSnoozed, Task: 1, Attempt: 2, Course: 4},
		{Kind: jobhost.EventCancelled, Task: 1, Course: 6},
		{Kind: jobhost.EventRetrying, Task: 1, Course: 8}, // by hand
		{Kind: jobhost.EventSucceeded, Task: 0, Course: 2},
		{Kind: jobhost.EventDead, Task: 1, Course: 10, Failure: failure},
	} {
		e.Job, e.Time = "a", epoch
		s.keeper.Published(&e)
	}
	other := jobhost.Event{Kind: jobhost.EventStarted, Job: "b", Course: 1}
	s.keeper.Published(&other)
	watcher.want(
		told(1, 1, state.StatusStarted), told(1, 2, state.StatusNotStarted), told(1, 3, state.StatusStarted), told(1, 4, state.StatusNotStarted),
		told(1, 6, state.StatusError), told(1, 8, state.StatusNotStarted), told(0, 2, state.StatusFinished), told(1, 10, state.StatusError),
	)
}

// TestRunWithoutGap: an event between the look at the job and the beginning of the
// watch is not lost, and one before it is not told twice.
func TestRunWithoutGap(t *testing.T) {
	t.Parallel()
	s := newSetup(t, job("a", 1))
	s.queue.look = func() { // after it follows the job, before it reads it
		s.queue.look = nil
		e := jobhost.Event{Kind: jobhost.EventSucceeded, Job: "a", Course: 2, Time: epoch}
		s.keeper.Published(&e)
		j := job("a", 1)
		j.Tasks[0] = jobhost.Task{State: jobhost.Running, Course: 1, Attempt: 1, StartedAt: at(0)} // seen before it ended
		s.queue.jobs["a"] = j
	}
	if got := s.report(jobhost.StateQuery{Job: "a"}).State; got.Status != state.StatusFinished || got.Version != 2 {
		t.Errorf("the state is %+v, want finished", got)
	}
}

func sentinel() jobhost.StateEvent { return jobhost.StateEvent{Sentinel: true, Replay: true} }

func told(task int, version int64, status int32) jobhost.StateEvent {
	return jobhost.StateEvent{State: state.State{JobID: "a", TaskID: task, Tag: jobhost.TagRun, Version: version, Status: status}}
}

// watcher reads what is watched.
type watcher struct {
	s    *setup
	next func() (jobhost.StateEvent, error, bool)
}

func (s *setup) watch(q jobhost.StateQuery) *watcher {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	events := make(chan jobhost.StateEvent)
	errs := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e, err := range s.keeper.WatchStates(ctx, q) {
			if err != nil {
				errs <- err
				return
			}
			events <- e
		}
	}()
	s.Cleanup(func() {
		cancel()
		for {
			select {
			case <-events:
			case <-ended:
				return
			}
		}
	})
	return &watcher{s: s, next: func() (jobhost.StateEvent, error, bool) {
		select {
		case e := <-events:
			return e, nil, true
		case err := <-errs:
			return jobhost.StateEvent{}, err, true
		case <-s.ctx.Done():
			return jobhost.StateEvent{}, nil, false
		}
	}}
}

// want checks the next events by what tests say of them.
func (w *watcher) want(want ...jobhost.StateEvent) {
	w.s.Helper()
	for _, e := range want {
		got, err, ok := w.next()
		if err != nil || !ok {
			w.s.Fatalf("no event %+v: %v", e, err)
		}
		ignore := cmpopts.IgnoreFields(state.State{}, "EventID", "Message", "Timestamp", "SchemaVersion")
		if diff := cmp.Diff(e, got, ignore, cmpopts.IgnoreFields(jobhost.StateEvent{}, "Cursor")); diff != "" {
			w.s.Fatal(diff)
		}
	}
}

// TestRunShowsTheDead: of two tasks, one dead and one that will be tried again, the
// dead one is what shows.
func TestRunShowsTheDead(t *testing.T) {
	t.Parallel()
	j := job("a", 2)
	j.Tasks[0] = jobhost.Task{Index: 0, State: jobhost.Retrying, Attempt: 1, Course: 2, StartedAt: at(1)}
	j.Tasks[1] = jobhost.Task{Index: 1, State: jobhost.Dead, Attempt: 1, Course: 2, StartedAt: at(1), EndedAt: at(7)}
	for task := range 2 {
		j.Failures = append(j.Failures, jobhost.Failure{Task: task, Attempt: 1, Code: "boom", Message: "it broke", EndedAt: *at(7)})
	}
	s := newSetup(t, j)
	if got := s.report(jobhost.StateQuery{Job: "a", Tag: jobhost.TagRun}).State; got.Status != state.StatusError || got.TaskID != 1 {
		t.Errorf("%+v prevails", got)
	}
}
