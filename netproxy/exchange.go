package netproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
)

// exchange is a request in flight, from its first attempt to the last byte of its
// response. It is used by one goroutine at a time, except that net/http's
// goroutines call its methods as a watcher.
type exchange struct {
	client   *Client
	req      *Request
	life     lifetime // of this request alone; the exchange is its watcher
	began    time.Time
	timeout  time.Duration
	watchdog *watchdog    // ends life at the deadline, or when the response stalls
	waiting  atomic.Int64 // when waiting for bytes began, in nanoseconds after began; 0 = not waiting
	over     atomic.Bool

	hop    int // 0 = the request itself
	method string
	url    httpurl.URL
	text   string // the text of url
	target *url.URL
	header http.Header
	// hostHeader is what the host adds; nil = nothing, as at another origin than the request's own.
	hostHeader http.Header
	body       []byte
	urls       []string // of the previous hops
	connected  atomic.Bool
	reused     atomic.Bool
	fresh      atomic.Int32 // connections established for it
	summary    Summary
	stream     Stream // embedded to save an allocation
}

// maxFresh is how many connections are established for one request, including
// its redirects and retries. net/http dials again, without limit, whenever a
// server announces over HTTP/2 that it is going away.
const maxFresh = 16

// start begins an exchange. The caller must end it.
func (c *Client) start(ctx context.Context, r *Request) *exchange {
	timeout := c.cfg.Timeout
	if r.timeout > 0 {
		timeout = min(timeout, r.timeout)
	}
	x := &exchange{
		client: c, req: r, began: time.Now(), timeout: timeout,
		method: r.method, header: r.header, hostHeader: r.hostHeader, url: r.url, text: r.text, target: r.target, body: r.body,
	}
	x.life.begin(ctx, c.transport.Watch(ctx, x))
	x.watchdog = c.watch(x)
	c.observer.Started(r)
	return x
}

// expect gives the server the idle timeout to send something, and returns the
// current time relative to began.
func (x *exchange) expect() time.Duration {
	since := max(time.Since(x.began), 1)
	x.waiting.Store(int64(since))
	return since
}

// rest suspends the idle timeout; only the deadline applies.
func (x *exchange) rest() { x.waiting.Store(0) }

// left returns the time up to the deadline.
func (x *exchange) left() time.Duration { return x.timeout - time.Since(x.began) }

// Connected implements [guard.Watcher].
func (x *exchange) Connected(reused bool) {
	x.connected.Store(true)
	x.reused.Store(reused)
	if !reused && x.fresh.Add(1) > maxFresh {
		x.life.end(errGoingAway)
	}
}

// FirstByte implements [guard.Watcher]: the rest of the header must follow within the idle timeout.
func (x *exchange) FirstByte() { x.expect() }

// Interim implements [guard.Watcher]: the server may take its time for the final response.
func (x *exchange) Interim() { x.rest() }

// end is called once nothing more will come; only the first call counts.
func (x *exchange) end(f *fault) {
	if x.over.Swap(true) {
		return
	}
	x.client.unwatch(x.watchdog)
	x.life.end(errReleased)
	s := &x.summary
	s.Hops, s.Reused, s.Duration = x.hop, x.reused.Load(), time.Since(x.began)
	if f != nil {
		s.Code = f.code
		if f.limit != "" {
			x.client.observer.Limit(f.limit)
		}
	}
	x.client.observer.Ended(x.req, *s)
	x.client.log(x.req, *s)
}

// fail ends the exchange and returns its error.
func (x *exchange) fail(f *fault) *Error {
	x.end(f)
	return x.error(f)
}

func (x *exchange) error(f *fault) *Error {
	e := &Error{
		Kind: f.kind, Code: f.code, Message: f.message, RequestID: x.id(), Method: x.method, URL: x.text,
		Redirects: x.urls, Duration: time.Since(x.began), Response: f.resp, cause: f.cause,
	}
	orElse(&e.Kind, KindRequest)
	return e
}

// id returns the id of the current hop.
func (x *exchange) id() string {
	if x.hop == 0 {
		return x.req.id
	}
	return x.req.id + "/" + strconv.Itoa(x.hop+1)
}

// retryPolicy spreads out the retries of requests that failed at the same moment.
func retryPolicy() jobhost.RetryPolicy {
	return jobhost.RetryPolicy{Backoff: jobhost.BackoffExponential, Initial: 100 * time.Millisecond, Multiplier: 2, Max: 2 * time.Second, Jitter: 0.5}
}

// sendHop sends the current hop until there is a response, or no point in retrying.
func (x *exchange) sendHop() (*http.Response, *fault) {
	for attempt := 0; ; attempt++ {
		resp, err := x.attempt()
		if err == nil {
			return resp, nil
		}
		f := faultOf(err, x.life.why())
		delay := retryPolicy().Delay(attempt+2, rand.Float64()) //nolint:gosec // jitter needs no secure randomness
		if attempt >= x.client.retries || !x.mayRetry(f) || x.left() < delay {
			return nil, f
		}
		x.summary.Retries++
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-x.life.Done():
			timer.Stop()
			return nil, faultOf(nil, x.life.why())
		}
	}
}

// mayRetry reports whether resending the hop is safe and may help.
func (x *exchange) mayRetry(f *fault) bool {
	if x.life.why() != nil {
		return false
	}
	switch f.code {
	case CodeDNS:
		e, ok := errors.AsType[*net.DNSError](f)
		return !ok || !e.IsNotFound
	case CodeTimeout:
		return !x.connected.Load()
	case CodeConnection:
		return !x.connected.Load() || x.idempotent()
	}
	return false
}

func (x *exchange) idempotent() bool {
	return isIdempotent(x.method) || x.header.Get(headerIdempotency) != "" ||
		x.hostHeader.Get(headerIdempotency) != ""
}

// attempt sends the current hop once.
func (x *exchange) attempt() (*http.Response, error) {
	pass, err := x.client.destinations.enter(&x.life, x.url, x.began.Add(x.timeout))
	if err != nil {
		return nil, err
	}
	x.connected.Store(false)
	x.rest()
	req := (&http.Request{
		Method: x.method, URL: x.target, Header: x.fields(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(x.body)),
	}).WithContext(&x.life)
	if len(x.body) > 0 {
		body := x.body
		req.Body = newBody(body)
		req.GetBody = func() (io.ReadCloser, error) { return newBody(body), nil }
		x.summary.Sent += int64(len(body))
	}
	resp, err := x.client.transport.Send(req, x.url)
	if err == nil && (resp.StatusCode < 200 || resp.StatusCode > 999) {
		resp, err = nil, errors.Join(errStatus, resp.Body.Close())
	}
	if pass.Judges() {
		pass.end(resp, err, x.life.why())
	}
	return resp, err
}

// errStatus: net/http accepts 000, and over HTTP/2 any number. For guests status
// 0 means no response, and metrics count by the first digit.
var errStatus = &fault{code: CodeProtocol, message: "the server's answer has no status"}

// newBody returns a body in a form that net/http recognizes as in memory: it would
// send any other after the header, in a separate packet.
func newBody(body []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }

// fields returns the header of the current hop, which must not be modified:
// requests that add nothing to the client's own fields share one.
func (x *exchange) fields() http.Header {
	if len(x.header) == 0 && len(x.hostHeader) == 0 && len(x.client.secrets) == 0 {
		return x.client.own
	}
	h := make(http.Header, len(x.header)+len(x.hostHeader)+3)
	maps.Copy(h, x.client.own)
	if x.header["Range"] != nil { // a range of an encoded body can't be decoded
		delete(h, "Accept-Encoding")
	}
	maps.Copy(h, x.header)
	maps.Copy(h, x.hostHeader)
	x.client.secrets.inject(h, x.method, x.url)
	return h
}
