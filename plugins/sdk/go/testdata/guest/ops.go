package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// fetch sends its input, a request as text without a body, and tells all of the response.
//
//go:wasmexport fetch
func fetch(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		method, url, _ := strings.Cut(string(job.Input()), " ")
		r, err := job.Fetch(jobhost.Request{Method: method, URL: url, Header: jobhost.Header{"a": {"1", "2"}}, Body: []byte("body")})
		if err != nil {
			return nil, err
		}
		return fmt.Appendf(nil, "%d %s %s", r.Status, r.Header.Get("Content-Type"), r.Body), nil
	})
}

// all fetches the lines of its input, ten at a time.
//
//go:wasmexport all
func all(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		var requests []jobhost.Request
		for url := range strings.Lines(string(job.Input())) {
			requests = append(requests, jobhost.Request{URL: strings.TrimSpace(url)})
		}
		for i, answer := range job.FetchAll(requests, 10) {
			if answer.Err != nil {
				return nil, answer.Err
			}
			_, _ = fmt.Fprintln(job, i, string(answer.Response.Body))
		}
		return nil, nil
	})
}

// race has its two inputs race.
//
//go:wasmexport race
func race(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		one, other, _ := strings.Cut(string(job.Input()), "\n")
		i, r, err := job.Race(jobhost.Request{URL: one}, jobhost.Request{URL: other})
		if err != nil {
			return nil, err
		}
		return fmt.Appendf(nil, "%d %s", i, r.Body), nil
	})
}

// waits waits for a request, a timer and a child, and says which came when.
//
//go:wasmexport waits
func waits(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		call, err := job.Send(jobhost.Request{URL: string(job.Input())})
		child, childErr := job.Start(jobhost.Spec{Worker: "w"})
		later, laterErr := job.Submit(jobhost.Spec{Worker: "w"})
		if err := errors.Join(err, childErr, laterErr); err != nil {
			return nil, err
		}
		began := time.Now()
		all := []jobhost.Pending{call, job.After(time.Minute), child}
		for range all {
			i, err := job.Wait(time.Hour, all...)
			if err != nil {
				return nil, err
			}
			_, _ = fmt.Fprintf(job, "%d after %v;", i, time.Since(began).Truncate(time.Second))
			if i < 0 {
				break
			}
			all[i] = job.After(24 * time.Hour)
		}
		ended, err := child.Ended()
		return fmt.Appendf(nil, "%s %s %s", child.ID(), later, ended), err
	})
}

// old is a request of an earlier job.
var old *jobhost.Call

//go:wasmexport stale
func stale(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) (out []byte, err error) {
		if old != nil {
			_, err = old.Response()
			old.Drop()
			return nil, err
		}
		old, err = job.Send(jobhost.Request{URL: "http://a"})
		return nil, err
	})
}

//go:wasmexport defers
func defers(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		id, err := job.Defer(jobhost.Request{URL: string(job.Input())}, "reply", []byte("for later"))
		return []byte(id), err
	})
}

//go:wasmexport reply
func reply(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		r, err := jobhost.ParseReply(job.Input())
		if err != nil {
			return nil, err
		}
		if r.Err != nil {
			return nil, r.Err
		}
		return fmt.Appendf(nil, "%s %s %d %s", r.ID, r.Args, r.Response.Status, r.Response.Body), nil
	})
}
