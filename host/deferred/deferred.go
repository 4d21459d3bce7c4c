// Package deferred sends requests that attempts have left to the host: each is a
// job of the host's own, so that it is durable, retried, seen and cancelled like
// every other, and its response is a job of the worker that asked, submitted
// together with the end of the first.
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

// What holds for the requests that are left to a host.
const (
	// Slots is how many are under way at one time; those beyond wait in the queue.
	Slots = 256
	// PerWorker is how many of one worker are, so that one whose servers are slow
	// leaves room for the others.
	PerWorker = 192
	// Capacity is how many may wait; over it attempts are refused to leave more.
	Capacity = 1_000_000
	// MaxAttempts is how often one is tried, each time with the retries of
	// netproxy; then the response says what was wrong.
	MaxAttempts = 5
	// Timeout bounds an attempt besides the worker's own http.timeout.
	Timeout = jobhost.MaxTimeout
)

// Retry returns when a request is tried again.
func Retry() jobhost.RetryPolicy {
	retry := jobhost.DefaultRetry()
	retry.MaxAttempts = MaxAttempts
	return retry
}

// request is the payload of a request's job.
type request struct {
	// Worker is whose grant holds, and who gets the response, for Entry.
	Worker string              `json:"worker"`
	Entry  string              `json:"entry,omitempty"`
	Args   []byte              `json:"args,omitempty"`
	Method string              `json:"method"`
	URL    string              `json:"url"`
	Header map[string][]string `json:"header,omitempty"`
	Body   []byte              `json:"body,omitempty"`
	// Key is the same with each attempt, so that servers know a repetition.
	Key string `json:"key"`
}

// Spec returns the job of a request that an attempt leaves to the host.
func Spec(at *hostcall.Attempt, r *hostcall.HTTPRequest, entry string, args []byte) (jobhost.Spec, error) {
	if _, err := netproxy.NewRequest(netproxy.RequestSpec{Method: r.Method, URL: r.URL, Header: r.Header}); err != nil {
		return jobhost.Spec{}, err // now, while somebody can do something about it
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

// Config says what requests are sent by.
type Config struct {
	// Pool returns what sends the requests of a worker: nil = it may send none any
	// more; false = there is no such worker now, or it takes no jobs.
	Pool func(worker string) (netproxy.Pool, bool)
	// MaxPayload bounds the job that a response becomes, in bytes.
	MaxPayload int
}

// New returns the worker of the requests.
func New(cfg Config) runtime.Plugin {
	return builtin.New((&sender{cfg}).run, nil)
}

// headRoom is what a response takes beside its body: the header, and the args in base64.
const headRoom = netproxy.MaxHeaderBytes + hostcall.MaxArgsBytes*4/3 + 1<<10

// Waits before a request is tried again that could not even be begun; they
// don't count as attempts.
const (
	awaitWorker = 10 * time.Second
	awaitRoom   = time.Second
)

// bringWithin is how long a response waits for a place in the queue of its worker.
const bringWithin = time.Minute
