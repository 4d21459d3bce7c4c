package pending

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Jobs is the part of the queue that guests can wait for.
type Jobs interface {
	// Wait waits for the end of a job until ctx ends.
	Wait(ctx context.Context, id string) (jobhost.Job, error)
	Result(ctx context.Context, id string, task int) (jobhost.Result, error)
}

// ending is a job's end.
type ending struct {
	jobs Jobs
	promise[jobhost.Job]
	drop context.CancelFunc
}

// Await returns a pending that is ready when a job has ended. A goroutine of s
// waits for that until it is dropped.
func Await(s *scope.Scope, jobs Jobs, id string) (hostcall.Ending, error) {
	ctx, cancel := context.WithCancel(context.Background())
	e := &ending{jobs: jobs, drop: cancel}
	err := s.Go("", func(stop context.Context) error {
		defer context.AfterFunc(stop, cancel)()
		job, err := jobs.Wait(ctx, id)
		e.set(job, err)
		return nil
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("wait for job %s: %w", id, err)
	}
	return e, nil
}

// Drop implements [hostcall.Pending].
func (e *ending) Drop() { e.drop() }

// Message implements [hostcall.Ending].
func (e *ending) Message(ctx context.Context) ([]byte, error) {
	job, err := e.get(ctx)
	if err != nil {
		return nil, err
	}
	var counts jobhost.Counts
	for i := range job.Tasks {
		counts[job.Tasks[i].State]++
	}
	ended := jobhost.Ended{
		Job: job.ID, Worker: job.Worker, State: job.State, Labels: job.Labels, Tasks: counts.Numbers(),
	}
	if job.EndedAt != nil {
		ended.EndedAt = *job.EndedAt
	}
	if len(job.Tasks) == 1 {
		if err := e.addOnly(ctx, &job, &ended); err != nil {
			return nil, err
		}
	}
	return json.Marshal(&ended)
}

// maxResult bounds the results that are passed on to guests; larger ones are
// omitted.
const maxResult = 1 << 20

// addOnly adds the outcome of a job's only task.
func (e *ending) addOnly(ctx context.Context, job *jobhost.Job, ended *jobhost.Ended) error {
	if job.State == jobhost.Dead && len(job.Failures) > 0 {
		ended.Failure = &job.Failures[len(job.Failures)-1]
	}
	if job.State != jobhost.Succeeded || job.Tasks[0].ResultSize > maxResult {
		return nil
	}
	result, err := e.jobs.Result(ctx, job.ID, 0)
	if err != nil {
		return err
	}
	if utf8.Valid(result.Data) {
		ended.Result = string(result.Data)
	} else {
		ended.ResultBase64 = result.Data
	}
	return nil
}
