package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process"
)

func fetch(_ context.Context, job *process.Job) ([]byte, error) {
	r, err := job.Get(string(job.Input()))
	if err != nil {
		return []byte("error: " + err.Error()), nil //nolint:nilerr // the suite wants to read it
	}
	return fmt.Appendf(nil, "%d %s", r.Status, r.Body), nil
}

func race(_ context.Context, job *process.Job) ([]byte, error) {
	one, other, _ := strings.Cut(string(job.Input()), " ")
	_, r, err := job.Race(jobhost.Request{URL: one}, jobhost.Request{URL: other})
	if err != nil {
		return nil, err
	}
	return r.Body, nil
}

func timeout(_ context.Context, job *process.Job) ([]byte, error) {
	_, err := job.Wait(jobhost.Forever, job.After(10*time.Millisecond))
	return []byte("late"), err
}

func child(_ context.Context, job *process.Job) ([]byte, error) {
	id, err := job.Submit(jobhost.Spec{Worker: "other", Payload: job.Input()})
	return []byte(id), err
}

func spread(_ context.Context, job *process.Job) ([]byte, error) {
	job.Progress(1, 2)
	err := errors.Join(
		job.Counter("seen").Add(1),
		job.Emit(job.Input()),
		job.SetState("half", 50, "half", nil),
	)
	if err != nil {
		return nil, err
	}
	s, err := job.GetState(jobhost.WithTask(job.Task()), jobhost.WithTag("half"))
	return strconv.AppendInt(nil, int64(s.Status), 10), err
}

func deferred(_ context.Context, job *process.Job) ([]byte, error) {
	_, err := job.Defer(jobhost.Request{URL: string(job.Input())}, "echo", []byte("args"))
	return nil, err
}

func inbox(_ context.Context, job *process.Job) ([]byte, error) { return job.Recv() }

// The following is only for processes; see the tests in the parent folder.

func noop(context.Context, *process.Job) ([]byte, error) { return nil, nil }

// size counts the payload piece by piece, and returns as many bytes.
func size(_ context.Context, job *process.Job) ([]byte, error) {
	n, err := io.Copy(job, job.Open())
	job.Log(jobhost.LevelInfo, strconv.FormatInt(n, 10))
	return nil, err
}

// wait waits for a distant timer until it is cancelled. Afterwards it can wait and make calls again.
func wait(_ context.Context, job *process.Job) ([]byte, error) {
	_, err := job.Wait(jobhost.Forever, job.After(time.Hour))
	if !errors.Is(err, jobhost.ErrStopped) {
		return []byte("the hour is over"), err
	}
	if _, again := job.Wait(jobhost.Forever, job.After(10*time.Millisecond)); again != nil {
		return nil, again
	}
	return nil, errors.Join(err, job.KV().Set("told", nil, 0))
}

var (
	calls   atomic.Int64
	meeting = make(chan struct{})
)

// fresh increments a counter; a process keeps its memory.
func fresh(context.Context, *process.Job) ([]byte, error) {
	return strconv.AppendInt(nil, calls.Add(1), 10), nil
}

// meet waits until four calls of it run at the same time.
func meet(ctx context.Context, _ *process.Job) ([]byte, error) {
	for range 3 { // each meets the three others
		select {
		case meeting <- struct{}{}:
		case <-meeting:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return []byte("True"), nil
}

// lines prints to the standard streams.
func lines(context.Context, *process.Job) ([]byte, error) {
	fmt.Println("to the output")
	_, err := fmt.Fprintln(os.Stderr, "to the error output")
	return nil, err
}
