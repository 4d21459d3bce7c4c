package main

import (
	"errors"
	"fmt"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// reports sets states in all ways.
//
//go:wasmexport reports
func reports(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		return nil, errors.Join(job.SetStarted("a"), job.SetState("a", -7, "x\ny", []byte(`{"b":1}`)), job.SetError("a", errors.New("oh")))
	})
}

// follows reports all events of another job's task, and then the lowest state.
//
//go:wasmexport follows
func follows(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		s, err := job.GetState(jobhost.WithJob("j2"), jobhost.WithTag("a"), jobhost.WithTask(1))
		if err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintf(job, "%s %d %s %d %q %s %s %d;", s.Job, s.Task, s.Tag, s.Status, s.Message, s.Payload, s.Time, s.Version)
		watch, err := job.WatchState(jobhost.WithJob("j2"), jobhost.WithTag("a"), jobhost.WithTask(1))
		if err != nil {
			return nil, err
		}
		defer watch.Drop()
		for {
			e, err := watch.Next()
			if errors.Is(err, jobhost.ErrLimit) {
				return []byte("end"), nil
			}
			if err != nil {
				return nil, err
			}
			_, _ = fmt.Fprint(job, e.State.Status, e.Replay, e.Sentinel, len(e.State.Message), ";")
		}
	})
}

// meets waits at a barrier for a minute.
//
//go:wasmexport meets
func meets(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		s, err := job.Synchronize("a", 2, time.Minute)
		return fmt.Append(nil, s.Status), err
	})
}

// fiber returns the sizes of what it is sent, and how often nothing came for a minute.
//
//go:wasmexport fiber
func fiber(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		inbox, err := job.Inbox()
		if err != nil {
			return nil, err
		}
		idle := 0
		for {
			i, err := job.Wait(time.Minute, inbox, job.After(time.Hour))
			if err != nil {
				return nil, err
			}
			if i < 0 {
				idle++
				break
			}
			message, err := inbox.Next()
			if err != nil {
				return nil, err
			}
			_, _ = fmt.Fprint(job, len(message), " ")
		}
		for message, err := range job.Messages() {
			if err != nil {
				return nil, err
			}
			_, _ = fmt.Fprintf(job, "%q ", message)
		}
		return fmt.Append(nil, idle), nil
	})
}
