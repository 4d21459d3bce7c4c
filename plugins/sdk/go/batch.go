package jobhost

import (
	"errors"
	"iter"
	"slices"
)

// Answer is what became of a request: a response, with any status, or an error,
// which is one of [Job.Fetch].
type Answer struct {
	Response *Response
	Err      error
}

// FetchAll sends requests, at most atOnce at a time, and gives the answer and the
// index of each as it comes. They are sent in their order. Each gets one answer,
// unless the loop is left: then what is under way is dropped, and the rest not sent.
//
//	for i, answer := range job.FetchAll(requests, 64) {
//
// atOnce below 1 means 64, which is what a job may have under way unless the
// manifest says otherwise. When that is less, so are those at a time. When the
// job is cancelled, all requests without an answer get [ErrStopped].
func (j *Job) FetchAll(requests []Request, atOnce int) iter.Seq2[int, Answer] {
	if atOnce < 1 {
		atOnce = 64
	}
	return func(yield func(int, Answer) bool) {
		b := batch{job: j, requests: requests, atOnce: atOnce}
		defer b.drop()
		for {
			i, answer := b.next()
			if i < 0 || !yield(i, answer) {
				return
			}
		}
	}
}

// batch is a FetchAll on its way.
type batch struct {
	job      *Job
	requests []Request
	atOnce   int
	sent     int       // how many of the requests
	calls    []Pending // under way
	indices  []int     // of their requests
	stopped  error     // why there is no more waiting
}

// next returns the next answer and the index of its request; -1 = that was all.
func (b *batch) next() (int, Answer) {
	for b.stopped == nil && b.sent < len(b.requests) && len(b.calls) < b.atOnce {
		call, err := b.job.Send(b.requests[b.sent])
		if len(b.calls) > 0 && errors.Is(err, ErrLimit) {
			b.atOnce = len(b.calls) // no more than the host lets be under way
			break
		}
		b.sent++
		if err != nil {
			return b.sent - 1, Answer{Err: err}
		}
		b.calls, b.indices = append(b.calls, call), append(b.indices, b.sent-1)
	}
	if b.stopped == nil && len(b.calls) > 0 {
		n, err := b.job.Wait(Forever, b.calls...)
		if err == nil {
			i, call := b.take(n)
			response, err := call.Response()
			return i, Answer{response, err}
		}
		b.stopped = err
	}
	switch {
	case len(b.calls) > 0:
		i, call := b.take(0)
		call.Drop()
		return i, Answer{Err: b.stopped}
	case b.sent < len(b.requests):
		b.sent++
		return b.sent - 1, Answer{Err: b.stopped}
	}
	return -1, Answer{}
}

// take takes a call out of those under way.
func (b *batch) take(n int) (index int, call *Call) {
	index, call = b.indices[n], b.calls[n].(*Call)
	b.indices, b.calls = slices.Delete(b.indices, n, n+1), slices.Delete(b.calls, n, n+1)
	return index, call
}

func (b *batch) drop() {
	for _, call := range b.calls {
		call.(*Call).Drop()
	}
}

// Race sends all requests at once and returns the first response with a status
// below 400, and the index of its request; the others are dropped. When no
// response is good, the error has those of all requests, in their order.
func (j *Job) Race(requests ...Request) (winner int, response *Response, err error) {
	if len(requests) == 0 {
		return -1, nil, failed("race", ErrInvalid)
	}
	errs := make([]error, len(requests))
	for i, answer := range j.FetchAll(requests, len(requests)) {
		if answer.Err == nil {
			answer.Err = answer.Response.Err()
		}
		if answer.Err == nil {
			return i, answer.Response, nil
		}
		errs[i] = answer.Err
	}
	return -1, nil, errors.Join(errs...)
}
