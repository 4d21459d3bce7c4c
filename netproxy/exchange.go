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

// exchange is a request under way, from its first attempt to the last byte of its
// response. One goroutine at a time works on it; net/http's own call its methods
// as a watcher.
type exchange struct {
	client   *Client
	req      *Request
	life     lifetime // of this request alone, with the exchange as its watcher
	began    time.Time
	timeout  time.Duration
	watchdog *watchdog    // ends life at the deadline, or when the response stalls
	waiting  atomic.Int64 // since when bytes are waited for, in nanoseconds after began; 0 = they aren't
	over     atomic.Bool

	hop       int // 0 = the request itself
	method    string
	url       httpurl.URL
	text      string // url's
	target    *url.URL
	header    http.Header
	body      []byte
	urls      []string // of the hops before
	connected atomic.Bool
	reused    atomic.Bool
	fresh     atomic.Int32 // connections that were made for it
	firstHop  bool         // still at the request's own origin
	summary   Summary
	stream    Stream // in here, so that it needs no memory of its own
}

// maxFresh is how many connections are made for one request, its redirects and
// retries included. net/http makes another whenever a server says by HTTP/2 that
// it is going away, for ever.
const maxFresh = 16

// start begins an exchange. It must be ended.
func (c *Client) start(ctx context.Context, r *Request) *exchange {
	timeout := c.cfg.Timeout
	if r.timeout > 0 {
		timeout = min(timeout, r.timeout)
	}
	x := &exchange{
		client: c, req: r, began: time.Now(), timeout: timeout,
		method: r.method, header: r.header, url: r.url, text: r.text, target: r.target, body: r.body, firstHop: true,
	}
	x.life.begin(ctx, c.transport.Watch(ctx, x))
	x.watchdog = c.watch(x)
	c.observer.Started(r)
	return x
}

// expect gives the server the idle timeout to send something, and returns how long
// after began that was.
func (x *exchange) expect() time.Duration {
	since := max(time.Since(x.began), 1)
	x.waiting.Store(int64(since))
	return since
}

// rest lets the server take its time up to the deadline.
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

// FirstByte implements [guard.Watcher]: a header that has begun must end.
func (x *exchange) FirstByte() { x.expect() }

// Interim implements [guard.Watcher]: the server may take its time for the response.
func (x *exchange) Interim() { x.rest() }

// end is called once, when nothing more will come.
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

// retryPolicy spreads what failed at one moment.
func retryPolicy() jobhost.RetryPolicy {
	return jobhost.RetryPolicy{Backoff: jobhost.BackoffExponential, Initial: 100 * time.Millisecond, Multiplier: 2, Max: 2 * time.Second, Jitter: 0.5}
}

// send sends the current hop until there is a response, or no sense in it.
func (x *exchange) send() (*http.Response, *fault) {
	for attempt := 0; ; attempt++ {
		resp, err := x.attempt()
		if err == nil {
			return resp, nil
		}
		f := faultOf(err, x.life.why())
		delay := retryPolicy().Delay(attempt+2, rand.Float64()) //nolint:gosec // jitter is no secret
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

// mayRetry reports whether sending the hop again is safe, and may help.
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
		x.firstHop && x.req.hostHeader.Get(headerIdempotency) != ""
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

// errStatus: net/http takes 000, and with HTTP/2 any number. Guests are told that
// there was no response by status 0, and metrics count by the first digit.
var errStatus = &fault{code: CodeProtocol, message: "the server's answer has no status"}

// newBody returns a body in the form in which net/http knows that it is in memory:
// it sends any other after the header, in a packet of its own.
func newBody(body []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }

// fields returns the header of the current hop, which is only read from then on:
// requests that add nothing to what the client sends have theirs in common.
func (x *exchange) fields() http.Header {
	if len(x.header) == 0 && len(x.req.hostHeader) == 0 && len(x.client.secrets) == 0 {
		return x.client.own
	}
	h := make(http.Header, len(x.header)+len(x.req.hostHeader)+3)
	maps.Copy(h, x.client.own)
	if x.header["Range"] != nil { // a range of something encoded can't be decoded
		delete(h, "Accept-Encoding")
	}
	maps.Copy(h, x.header)
	if x.firstHop {
		maps.Copy(h, x.req.hostHeader)
	}
	x.client.secrets.inject(h, x.method, x.url)
	return h
}
