package jobhost_test

import (
	"errors"
	"fmt"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// Several requests at a time, two here, with their answers as they arrive.
func ExampleJob_FetchAll() {
	handler := func(job *jobhost.Job) ([]byte, error) {
		requests := []jobhost.Request{{URL: "http://a/200"}, {URL: "http://a/dns"}, {URL: "http://a/404"}}
		for i, answer := range job.FetchAll(requests, 2) {
			if answer.Err != nil {
				_, _ = fmt.Fprintln(job, answer.Err)
				continue
			}
			_, _ = fmt.Fprintln(job, requests[i].URL, answer.Response.Status)
		}
		return nil, nil
	}
	fmt.Printf("%s", jobhost.Run(handler, jobhost.Attempt{HTTP: site}).Output)
	// Output:
	// http://a/200 200
	// GET http://a/dns: no dns
	// http://a/404 404
}

// A request that may take at most a second.
func ExampleJob_Wait() {
	handler := func(job *jobhost.Job) ([]byte, error) {
		call, err := job.Send(jobhost.Request{URL: "http://a/never"})
		if err != nil {
			return nil, err
		}
		i, err := job.Wait(time.Second, call)
		if i < 0 && err == nil {
			call.Drop()
			return []byte("it took too long"), nil
		}
		return nil, err
	}
	fmt.Printf("%s\n", jobhost.Run(handler, jobhost.Attempt{HTTP: site}).Output)
	// Output: it took too long
}

// The host sends the request later, and delivers its response as another job.
func ExampleParseReply() {
	order := func(job *jobhost.Job) ([]byte, error) {
		_, err := job.Defer(jobhost.Request{URL: "http://a/200"}, "done", []byte("order 7"))
		return nil, err
	}
	done := func(job *jobhost.Job) ([]byte, error) {
		reply, err := jobhost.ParseReply(job.Input())
		if err != nil {
			return nil, err
		}
		if reply.Err != nil {
			return nil, reply.Err
		}
		return fmt.Appendf(nil, "%s: %d", reply.Args, reply.Response.Status), nil
	}
	deferred := jobhost.Run(order, jobhost.Attempt{HTTP: site}).Deferred[0]
	reply := jobhost.Reply{ID: deferred.ID, Args: deferred.Args}
	reply.Response, reply.Err = site(deferred.Request)
	fmt.Printf("%s\n", jobhost.Run(done, jobhost.Attempt{Input: reply.Payload()}).Output)
	// Output: order 7: 200
}

// An error without a response may be returned unchanged.
func ExampleResponseError() {
	handler := func(job *jobhost.Job) ([]byte, error) {
		response, err := job.Get("http://a/timeout")
		if err != nil {
			return nil, err
		}
		return response.Body, response.Err()
	}
	err := jobhost.Run(handler, jobhost.Attempt{HTTP: site}).Err
	fmt.Println(err, errors.Is(err, jobhost.ReasonTimeout))
	// Output: GET http://a/timeout: no timeout true
}
