package jobhost

import (
	"errors"
	"iter"
	"slices"
)

// Answer is the result of a request: a response, with any status, or an error,
// which is one of [Job.Fetch].
type Answer struct {
	Response *Response
	Err      error
}

// FetchAll sends requests, at most atOnce at a time, and yields the index and the
// answer of each as it arrives. They are sent in order. Each gets one answer, unless
// the loop is left: then requests in flight are dropped, and the rest are not sent.
//
//	for i, answer := range job.FetchAll(requests, 64) {
//
// atOnce below 1 means 64, which is what a job may have in flight unless the
// manifest says otherwise. If the host's limit is lower, it applies. When the
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

// batch is a FetchAll in progress.
type batch struct {
	job      *Job
	requests []Request
	atOnce   int
	sent     int       // how many requests
	calls    []Pending // in flight
	indices  []int     // of their requests
	stopped  error     // why waiting ended
}

// next returns the next answer and the index of its request; -1 = there are no more.
func (b *batch) next() (int, Answer) {
	for b.stopped == nil && b.sent < len(b.requests) && len(b.calls) < b.atOnce {
		call, err := b.job.Send(b.requests[b.sent])
		if len(b.calls) > 0 && errors.Is(err, ErrLimit) {
			b.atOnce = len(b.calls) // no more than the host allows in flight
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

// take removes a call from those in flight.
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
// below 400, and the index of its request; the others are dropped. If no
// response is good, the error combines those of all requests, in order.
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
