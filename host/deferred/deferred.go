// Package deferred sends requests that attempts have left to the host. Each is a job of
// the host's own, so it is durable, retried, visible and cancellable like any other, and
// its response is a job for the worker that asked, submitted together with the end of
// the first.
package deferred

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/builtin"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Limits of the requests left to a host.
const (
	// Slots is how many are sent at a time; the others wait in the queue.
	Slots = 256
	// PerWorker is how many of them may belong to one worker, so that a worker with slow
	// servers leaves room for the others.
	PerWorker = 192
	// Capacity is how many may wait; beyond it attempts can't leave any more.
	Capacity = 1_000_000
	// MaxAttempts is how often a request is tried, each time with netproxy's own
	// retries; after that the response reports the failure.
	MaxAttempts = 5
	// Timeout bounds an attempt in addition to the worker's own http.timeout.
	Timeout = jobhost.MaxTimeout
)

// Retry returns the retry policy of the requests.
func Retry() jobhost.RetryPolicy {
	retry := jobhost.DefaultRetry()
	retry.MaxAttempts = MaxAttempts
	return retry
}

// request is the payload of a request's job.
type request struct {
	// Worker has the grant for the request, and gets the response at Entry.
	Worker string              `json:"worker"`
	Entry  string              `json:"entry,omitempty"`
	Args   []byte              `json:"args,omitempty"`
	Method string              `json:"method"`
	URL    string              `json:"url"`
	Header map[string][]string `json:"header,omitempty"`
	Body   []byte              `json:"body,omitempty"`
	// Key is the same in every attempt, so that servers recognise repetitions.
	Key string `json:"key"`
}

// Spec returns the job for a request that an attempt leaves to the host.
func Spec(at *hostcall.Attempt, r *hostcall.HTTPRequest, entry string, args []byte) (jobhost.Spec, error) {
	if _, err := netproxy.NewRequest(netproxy.RequestSpec{Method: r.Method, URL: r.URL, Header: r.Header}); err != nil {
		return jobhost.Spec{}, err // reported now, while the guest can still react
	}
	payload, err := json.Marshal(&request{
		Worker: at.Worker, Entry: entry, Args: args, Method: r.Method, URL: r.URL, Header: r.Header, Body: r.Body, Key: r.Key,
	})
	if err != nil {
		return jobhost.Spec{}, fmt.Errorf("defer request: %w", err)
	}
	return jobhost.Spec{
		Worker: jobhost.HTTPWorker, Payload: payload, ContentType: "application/json",
		Priority: at.Priority, Labels: at.Labels, ConcurrencyKey: at.Worker,
	}, nil
}

// Config configures the sending of requests.
type Config struct {
	// Pool returns the pool that sends a worker's requests: nil = it may not send any
	// more; false = the worker isn't loaded, or takes no jobs.
	Pool func(worker string) (netproxy.Pool, bool)
	// MaxPayload bounds the job made from a response, in bytes.
	MaxPayload int
}

// New returns the worker that sends the requests.
func New(cfg Config) runtime.Plugin {
	return builtin.New((&sender{cfg}).run, nil)
}

// headRoom is what a response takes in addition to its body: the header, and the args in
// base64.
const headRoom = netproxy.MaxHeaderBytes + hostcall.MaxArgsBytes*4/3 + 1<<10

// Waits before retrying a request that could not be started; these don't count as
// attempts.
const (
	awaitWorker = 10 * time.Second
	awaitRoom   = time.Second
)

// bringWithin is how long a response waits for a place in its worker's queue.
const bringWithin = time.Minute
