// Package jobhttp lets ordinary net/http code run in a worker: its client sends
// requests through the host, which has the network access that a worker lacks.
//
//	response, err := jobhttp.Client(job).Get("https://api.example.com/v1/things")
//
// Libraries that take an [http.Client] or an [http.RoundTripper] work unchanged. For those that
// take neither, set the default once, in an init function:
//
//	http.DefaultTransport = jobhttp.New(jobhost.Running, 0)
//
// Requests of several goroutines are in flight at the same time, although a worker
// has only one thread: see [Transport].
//
// It is a separate package because net/http makes a small worker four times as
// large: 10.1 MB instead of 2.3. If you don't need its types, the methods of the
// job are better: Fetch, FetchAll, Race.
package jobhttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// Client returns a client for the requests of a job.
func Client(job *jobhost.Job) *http.Client { return &http.Client{Transport: New(job, 0)} }

// Transport sends requests through the host and implements [http.RoundTripper].
// It is safe for concurrent use.
//
// The host follows redirects, keeps connections, decodes bodies, and judges each
// address; it has its own timeouts, retries and breakers. Bodies are held in
// memory, in both directions. Errors of requests without a response are a
// [*jobhost.ResponseError]; a handler may return them unchanged.
//
// A host call blocks all goroutines of a worker. So one of the goroutines waiting
// for a response waits for all: it lets the others run for as long as they begin or
// finish requests, asks the host which response is first, wakes the goroutine it is
// for, and passes this duty on when its own response is there. It asks for at most
// a quarter of a second at a time, and less at first, so that timers of the
// worker's other goroutines are not delayed by more than that. A context that ends
// drops its request, on time if it ends at its deadline.
type Transport struct {
	job   *jobhost.Job
	slots chan struct{} // one for each request in flight

	mu      sync.Mutex  // protects what follows, and the calls of open
	open    []*exchange // in flight
	polling bool        // one of them is asking the host
	turns   uint64      // how often a request began or its goroutine continued
}

// New returns a transport for the requests of a job, or of all jobs with
// [jobhost.Running]. At most atOnce are in flight, others wait for their turn; 0 =
// 64, which is what the host allows unless the manifest says otherwise.
func New(job *jobhost.Job, atOnce int) *Transport {
	if atOnce < 1 {
		atOnce = 64
	}
	return &Transport{job: job, slots: make(chan struct{}, atOnce)}
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := convert(r)
	if err != nil {
		return nil, err
	}
	ctx := r.Context()
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	response, err := t.exchange(ctx, request)
	if err != nil {
		return nil, err
	}
	return revert(r, response), nil
}

// convert converts a request and closes its body.
func convert(r *http.Request) (out jobhost.Request, err error) {
	if r.Body != nil {
		defer func() { err = errors.Join(err, r.Body.Close()) }()
		if out.Body, err = io.ReadAll(r.Body); err != nil {
			return out, err
		}
	}
	if r.URL == nil || r.Host != "" && r.Host != r.URL.Host || len(r.Trailer) > 0 {
		return out, errors.New("jobhttp: a request is sent to the host of its URL by that name, and without a trailer")
	}
	bare := *r.URL
	bare.User, bare.Fragment, bare.RawFragment = nil, "", "" // the client has turned the password into a field
	out.Method, out.URL, out.Header = r.Method, bare.String(), jobhost.Header(r.Header)
	return out, nil
}

// revert converts a response to that of net/http.
func revert(r *http.Request, from *jobhost.Response) *http.Response {
	header := make(http.Header, len(from.Header))
	for name, values := range from.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	length := int64(len(from.Body))
	if r.Method == http.MethodHead {
		length = -1
		if n, err := strconv.ParseUint(header.Get("Content-Length"), 10, 63); err == nil {
			length = int64(n)
		}
	}
	return &http.Response{
		Status: strconv.Itoa(from.Status) + " " + http.StatusText(from.Status), StatusCode: from.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(from.Body)), ContentLength: length, Request: r,
	}
}
