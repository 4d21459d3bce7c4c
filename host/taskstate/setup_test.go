package taskstate_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// knownJobs are what a test says that the queue knows.
type knownJobs struct {
	mu   sync.Mutex // protects the fields below
	jobs map[string]jobhost.Job
	look func() // called before each look; nil = nothing
}

// Job implements [taskstate.Jobs].
func (q *knownJobs) Job(_ context.Context, id string) (jobhost.Job, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.look != nil {
		q.look()
	}
	job, ok := q.jobs[id]
	if !ok {
		return jobhost.Job{}, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no job " + id}
	}
	return job, nil
}

// setup is what a test works with.
type setup struct {
	*testing.T
	ctx    context.Context
	queue  *knownJobs
	store  *statetest.Memory
	keeper *taskstate.Keeper
}

func newSetup(t *testing.T, jobs ...jobhost.Job) *setup {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	s := &setup{T: t, ctx: ctx, queue: &knownJobs{jobs: map[string]jobhost.Job{}}, store: statetest.NewMemory()}
	for _, job := range jobs {
		s.queue.jobs[job.ID] = job
	}
	s.keeper = taskstate.New(taskstate.Config{Store: s.store, Jobs: s.queue, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.keeper.Close)
	return s
}

// job returns a job of the queue with tasks that were never begun.
func job(id string, tasks int) jobhost.Job {
	j := jobhost.Job{ID: id, Worker: "w", TaskCount: tasks, CreatedAt: epoch}
	for i := range tasks {
		j.Tasks = append(j.Tasks, jobhost.Task{Index: i, State: jobhost.Ready})
	}
	return j
}

func (s *setup) set(job string, task int, tag string, status int32, tasks int) {
	s.Helper()
	if _, err := s.keeper.SetState(s.ctx, "", state.State{JobID: job, TaskID: task, Tag: tag, Status: status}, tasks); err != nil {
		s.Fatal(err)
	}
}

func (s *setup) report(q jobhost.StateQuery) jobhost.StateReport {
	s.Helper()
	r, err := s.keeper.States(s.ctx, q)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func (s *setup) wantCode(err error, code jobhost.Code) {
	s.Helper()
	if jobhost.CodeOf(err) != code {
		s.Errorf("the error is %v (%q), want code %q", err, jobhost.CodeOf(err), code)
	}
}
