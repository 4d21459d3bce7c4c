package deferred_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/deferred"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/netproxy/policy"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// bench sends deferred requests of the worker "w" to a server.
type bench struct {
	t       *testing.T
	server  *httptest.Server
	hits    atomic.Int64
	cfg     netproxy.ProcessorConfig
	most    int  // bytes that a job may have
	stopped bool // nothing is sent
	queue   queue
}

// queue takes the jobs that responses come as.
type queue struct {
	runtimetest.Services
	refuse  []error // what the first submits are answered
	brought []jobhost.Spec
}

// SubmitJob implements [hostcall.Jobs].
func (q *queue) SubmitJob(_ *hostcall.Attempt, spec *jobhost.Spec, _ hostcall.SubmitTime) (string, error) {
	if len(q.refuse) > 0 {
		err := q.refuse[0]
		q.refuse = q.refuse[1:]
		return "", err
	}
	q.brought = append(q.brought, *spec)
	return "response", nil
}

func setup(t *testing.T, answer http.HandlerFunc) *bench {
	t.Helper()
	b := &bench{t: t, most: 1 << 20}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.hits.Add(1)
		answer(w, r)
	}))
	t.Cleanup(b.server.Close)
	return b
}

// run makes an attempt at a request that some attempt has left.
func (b *bench) run(number int) jobhost.Outcome {
	b.t.Helper()
	rule, err := policy.ParseRule(b.server.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	client, err := netproxy.New(netproxy.Config{Policy: policy.Policy{
		Allow: []policy.Rule{rule}, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	b.cfg.Client = client
	pool := netproxy.NewProcessor(b.cfg)
	if err := pool.Start(); err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = pool.Stop(time.Minute) }()
	if b.stopped {
		pool.Drain()
	}
	asker := &hostcall.Attempt{Job: "asker", Worker: "w"}
	spec, err := deferred.Spec(asker, &hostcall.HTTPRequest{Method: "POST", URL: b.server.URL, Key: "asker/0/1"}, "page", []byte("args"))
	if err != nil {
		b.t.Fatal(err)
	}
	plugin := deferred.New(deferred.Config{
		Pool: func(string) (netproxy.Pool, bool) { return pool, true }, MaxPayload: b.most,
	})
	instance, err := plugin.Instantiate(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	at := runtimetest.Attempt("", string(spec.Payload))
	at.Job, at.Number, at.Services, at.Deadline = "request", number, &b.queue, time.Now().Add(time.Minute)
	return instance.Run(b.t.Context(), at).Outcome
}

// only returns the payload of the only job that was brought.
func (b *bench) only() string {
	b.t.Helper()
	if len(b.queue.brought) != 1 {
		b.t.Fatalf("%d jobs were brought", len(b.queue.brought))
	}
	return string(b.queue.brought[0].Payload)
}

// TestNoRoomForResponse: a response for which the host has no memory counts as an
// attempt, since the request was sent: it must not be sent forever.
func TestNoRoomForResponse(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 8<<10)) })
	b.cfg.MaxBuffered = 4 << 10
	if out := b.run(1); out.Kind != jobhost.OutcomeFailed || out.Failure.Code != "exhausted" {
		t.Errorf("the first attempt ends with %+v", out)
	}
	if out := b.run(deferred.MaxAttempts); out.Kind != jobhost.OutcomeSucceeded {
		t.Errorf("the last attempt ends with %+v", out)
	}
	if got := b.only(); !strings.Contains(got, "\nerror: exhausted\n") {
		t.Errorf("the worker is told %q", got)
	}
}

// TestNoRoomForRequest: one that was never sent doesn't count.
func TestNoRoomForRequest(t *testing.T) {
	t.Parallel()
	b := setup(t, func(http.ResponseWriter, *http.Request) {})
	b.stopped = true
	if out := b.run(deferred.MaxAttempts); out.Kind != jobhost.OutcomeSnoozed || b.hits.Load() != 0 {
		t.Errorf("%+v after %d requests", out, b.hits.Load())
	}
}

// TestOnlyHostSaysWhoAsked: a server can't send the fields by which the worker
// knows its request.
func TestOnlyHostSaysWhoAsked(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["jobhost-request"] = []string{"forged"}
		w.Header().Set("Jobhost-Args", "Zm9yZ2Vk")
		_, _ = io.WriteString(w, "hello")
	})
	if out := b.run(1); out.Kind != jobhost.OutcomeSucceeded {
		t.Fatalf("%+v", out)
	}
	got := b.only()
	if !strings.HasPrefix(got, "200\njobhost-request: request\njobhost-args: YXJncw==\n") || strings.Count(got, "jobhost-") != 2 {
		t.Errorf("the worker is told %q", got)
	}
}

// TestQueueIsFull: a response waits for a place in the queue of its worker; the
// request isn't sent again for that.
func TestQueueIsFull(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	b.queue.refuse = []error{&jobhost.Error{Code: jobhost.CodeExhausted, Message: "the queue of w is full"}}
	if out := b.run(1); out.Kind != jobhost.OutcomeSucceeded {
		t.Errorf("%+v", out)
	}
	if got := b.only(); !strings.HasSuffix(got, "\n\nhello") || b.hits.Load() != 1 {
		t.Errorf("%d requests brought %q", b.hits.Load(), got)
	}
}

// TestResponseTooLargeForJob: where no job can be made of a response, one tells so.
func TestResponseTooLargeForJob(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	b.queue.refuse = []error{&jobhost.Error{Code: jobhost.CodeTooLarge, Message: "a payload of 120 bytes is larger than 100"}}
	if out := b.run(1); out.Kind != jobhost.OutcomeSucceeded {
		t.Errorf("%+v", out)
	}
	if got := b.only(); !strings.HasPrefix(got, "0\njobhost-request: request\n") || !strings.Contains(got, "\nerror: response_too_large\n") {
		t.Errorf("the worker is told %q", got)
	}
}
