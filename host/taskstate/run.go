package taskstate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// runs is a store of states that adds the state of the attempts to the jobs of the
// queue.
type runs struct {
	state.Store
	jobs Jobs
	idle time.Duration // how long a job without users is followed; 0 = while there is room

	count    atomic.Int64 // number of followed jobs
	mu       sync.RWMutex // protects followed
	followed map[string]map[*run]struct{}
}

// IdleTime implements [state.Costly]: it is that of the store.
func (r *runs) IdleTime() time.Duration { return r.idle }

// run is a job of the queue that is followed.
type run struct {
	state.Source
	runs  *runs
	job   string
	tasks int // as the queue has it; 0 = the queue doesn't know the job
	feed  state.Feed
}

// Tasks implements [state.Source]. The queue's number takes precedence over what was
// said of the job before it was submitted.
func (f *run) Tasks() int {
	if f.tasks > 0 {
		return f.tasks
	}
	return f.Source.Tasks()
}

// Open implements [state.Store].
func (r *runs) Open(ctx context.Context, job state.Job, tasks int, feed state.Feed) (state.Source, error) {
	if job.Run != "" {
		return r.Store.Open(ctx, job, tasks, feed)
	}
	// Followed before it is read, so that no event is missed.
	f := &run{runs: r, job: job.ID, feed: feed}
	r.follow(f)
	known, err := r.jobs.Job(ctx, job.ID)
	if err == nil {
		tasks, f.tasks = known.TaskCount, known.TaskCount
		feed.Put(statesOf(&known)...)
	} else if jobhost.CodeOf(err) != jobhost.CodeNotFound {
		r.forget(f)
		return nil, err
	}
	if f.Source, err = r.Store.Open(ctx, job, tasks, feed); err != nil {
		r.forget(f)
		return nil, err
	}
	return f, nil
}

// Close implements [state.Source].
func (f *run) Close() error {
	f.runs.forget(f)
	return f.Source.Close()
}

func (r *runs) follow(f *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.followed[f.job] == nil {
		r.followed[f.job] = map[*run]struct{}{}
	}
	r.followed[f.job][f] = struct{}{}
	r.count.Add(1)
}

func (r *runs) forget(f *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.followed[f.job][f]; !ok {
		return
	}
	r.count.Add(-1)
	if delete(r.followed[f.job], f); len(r.followed[f.job]) == 0 {
		delete(r.followed, f.job)
	}
}

// published passes an event on to the followers of its job.
func (r *runs) published(e *jobhost.Event) {
	if e.Course == 0 || r.count.Load() == 0 {
		return
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.followed[e.Job]) == 0 {
		return
	}
	s := stateOf(e)
	for f := range r.followed[e.Job] {
		f.feed.Put(s)
	}
}

// stateOf returns the task's state after an event.
func stateOf(e *jobhost.Event) state.State {
	s := blank(e.Job, e.Task, e.Course, e.Time)
	switch e.Kind {
	case jobhost.EventStarted:
		return started(s, e.Attempt)
	case jobhost.EventSucceeded:
		return state.Finished(s)
	case jobhost.EventDead:
		return dead(s, e.Failure)
	case jobhost.EventCancelled:
		return cancelled(s)
	case jobhost.EventRetrying:
		if e.Failure != nil {
			return failed(s, e.Failure)
		}
	}
	return waiting(s)
}

// statesOf returns the states of all tasks of a job that have ever been started.
func statesOf(job *jobhost.Job) []state.State {
	last := map[int]*jobhost.Failure{} // by task
	for i := range job.Failures {
		last[job.Failures[i].Task] = &job.Failures[i]
	}
	var list []state.State
	for i := range job.Tasks {
		if t := &job.Tasks[i]; t.Course > 0 {
			list = append(list, stateOfTask(job, t, last[t.Index]))
		}
	}
	return list
}

func stateOfTask(job *jobhost.Job, t *jobhost.Task, last *jobhost.Failure) state.State {
	s := blank(job.ID, t.Index, t.Course, job.CreatedAt)
	for _, at := range []*time.Time{t.StartedAt, t.EndedAt} {
		if at != nil {
			s.Timestamp = *at
		}
	}
	switch {
	case t.State == jobhost.Running:
		return started(s, t.Attempt)
	case t.State == jobhost.Succeeded:
		return state.Finished(s)
	case t.State == jobhost.Dead:
		return dead(s, last)
	case t.State == jobhost.Cancelled:
		return cancelled(s)
	case last != nil && last.Attempt == t.Attempt:
		s.Timestamp = last.EndedAt
		return failed(s, last)
	}
	return waiting(s)
}

// blank is the state of a task at a point of its course, without a status yet.
func blank(job string, task int, course int64, at time.Time) state.State {
	return state.State{
		JobID: job, TaskID: task, Tag: jobhost.TagRun, Version: course, Timestamp: at.UTC(),
		EventID: "run-" + strconv.FormatInt(course, 10), SchemaVersion: 1,
	}
}

func started(s state.State, attempt int) state.State {
	s = state.Started(s)
	if attempt > 1 {
		s.Message += fmt.Sprintf(", attempt %d", attempt)
	}
	return s
}

func dead(s state.State, f *jobhost.Failure) state.State {
	if f == nil {
		return state.Failed(errDead, s)
	}
	return state.Failed(fmt.Errorf("%s: %s", f.Code, f.Message), s)
}

// failed is the state of a task that waits to start again after a failure. It has the
// text of a warning but not its status, which is below that of an error: a task that
// will be retried would hide a dead one.
func failed(s state.State, f *jobhost.Failure) state.State {
	s = state.Warned(fmt.Sprintf("attempt %d failed: %s: %s", f.Attempt, f.Code, f.Message), s)
	s.Status = state.StatusNotStarted
	return s
}

func cancelled(s state.State) state.State { return state.Failed(errCancelled, s) }

// waiting is the state of a task that has run and waits to run again.
func waiting(s state.State) state.State {
	s.Message = "Waits to run again"
	return s
}

var (
	errDead      = errors.New("dead")
	errCancelled = errors.New("cancelled")
)
