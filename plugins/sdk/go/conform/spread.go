package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

//go:wasmexport fetch
func fetch(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		r, err := job.Get(string(job.Input()))
		if err != nil {
			return []byte("error: " + err.Error()), nil //nolint:nilerr // the suite wants to read it
		}
		return fmt.Appendf(nil, "%d %s", r.Status, r.Body), nil
	})
}

//go:wasmexport race
func race(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		one, other, _ := strings.Cut(string(job.Input()), " ")
		_, r, err := job.Race(jobhost.Request{URL: one}, jobhost.Request{URL: other})
		if err != nil {
			return nil, err
		}
		return r.Body, nil
	})
}

//go:wasmexport timeout
func timeout(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		_, err := job.Wait(jobhost.Forever, job.After(10*time.Millisecond))
		return []byte("late"), err
	})
}

//go:wasmexport child
func child(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		id, err := job.Submit(jobhost.Spec{Worker: "other", Payload: job.Input()})
		return []byte(id), err
	})
}

//go:wasmexport spread
func spread(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
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
	})
}

//go:wasmexport defer
func deferred(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		_, err := job.Defer(jobhost.Request{URL: string(job.Input())}, "echo", []byte("args"))
		return nil, err
	})
}

//go:wasmexport inbox
func inbox(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) { return job.Recv() })
}
