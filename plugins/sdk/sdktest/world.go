package sdktest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// world is all that a guest can reach, in memory. What the goroutine of the guest
// asks for is recorded; the test looks at it when the job has ended.
type world struct {
	runtimetest.Board

	keys      map[string]item
	emitted   []string
	progress  []string
	metrics   []string // "KIND NAME", by id from 1
	observed  []string // "ID VALUE"
	submitted []string // "WHEN WORKER PAYLOAD"
	deferred  []string // "METHOD URL ENTRY ARGS"

	mu   sync.Mutex // protects sent and what is in it
	sent []*exchange
}

// item is a value of a key.
type item struct {
	value   []byte
	version int64
}

// exchange is a request that a guest has sent.
type exchange struct {
	line     string
	answered bool
	dropped  func() bool
}

var (
	_ hostcall.Services = (*world)(nil)
	_ hostcall.KV       = (*world)(nil)
	_ hostcall.Jobs     = (*world)(nil)
	_ hostcall.Ops      = (*world)(nil)
	_ hostcall.HTTP     = (*world)(nil)
	_ hostcall.States   = (*world)(nil)
	_ hostcall.Inbox    = (*world)(nil)
)

func newWorld() *world {
	w := &world{keys: map[string]item{}}
	w.Ended = make(chan struct{})
	w.Respond = w.respond
	return w
}

// The places of the world: a page that is there, one that never comes, one that
// isn't there, and a name that nobody has.
const (
	siteHello   = "http://site/hello"
	siteLong    = "http://site/long"
	siteNever   = "http://site/never"
	siteMissing = "http://site/missing"
	siteUnknown = "http://unknown/"
)

// long is more than what an SDK reads at once.
var long = strings.Repeat("long ", 40_000)

func (w *world) respond(ctx context.Context, r *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
	x := w.note(ctx, r)
	defer w.answered(x)
	header := map[string][]string{"Content-Type": {"text/plain"}, "X-Two": {"a", "b: c"}}
	switch r.URL {
	case siteHello:
		return &hostcall.HTTPResponse{Status: 200, Header: header, Body: []byte("hello")}, nil
	case siteLong:
		return &hostcall.HTTPResponse{Status: 200, Header: header, Body: []byte(long)}, nil
	case siteMissing:
		return &hostcall.HTTPResponse{Status: 404, Header: header, Body: []byte("no\n\nsuch page")}, nil
	case siteNever:
		<-ctx.Done()
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Field: "cancelled", Message: "nobody waits"}
	}
	return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Field: "dns", Message: "nobody has this name"}
}

// note records a request.
func (w *world) note(ctx context.Context, r *hostcall.HTTPRequest) *exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := &exchange{line: r.Method + " " + r.URL, dropped: func() bool { return ctx.Err() != nil }}
	w.sent = append(w.sent, x)
	return x
}

// answered records that there is an answer to somebody who waits for it.
func (w *world) answered(x *exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x.answered = !x.dropped()
}

// sentFirst makes everything wait for the request to a place.
func (w *world) sentFirst(url string) {
	gone := make(chan struct{})
	w.Respond = func(ctx context.Context, r *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
		if r.URL != url {
			<-gone
			return w.respond(ctx, r)
		}
		x := w.note(ctx, r)
		close(gone)
		<-ctx.Done()
		w.answered(x)
		return nil, ctx.Err()
	}
}

// requests returns what was sent.
func (w *world) requests() (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.sent {
		lines = append(lines, x.line)
	}
	return lines
}

// givenUp returns the requests that were dropped before they were answered.
func (w *world) givenUp() (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.sent {
		if !x.answered && x.dropped() {
			lines = append(lines, x.line)
		}
	}
	return lines
}

// Emit implements [hostcall.Services].
func (w *world) Emit(_ *hostcall.Attempt, data []byte) { w.emitted = append(w.emitted, string(data)) }

// Progress implements [hostcall.Services].
func (w *world) Progress(_ *hostcall.Attempt, done, total int64) {
	w.progress = append(w.progress, fmt.Sprintf("%d/%d", done, total))
}

// Metric implements [hostcall.Services].
func (w *world) Metric(_ *hostcall.Attempt, kind hostcall.MetricKind, name string) (int32, hostcall.Errno) {
	w.metrics = append(w.metrics, fmt.Sprint(kind, " ", name))
	return int32(len(w.metrics)), hostcall.OK
}

// Observe implements [hostcall.Services].
func (w *world) Observe(_ *hostcall.Attempt, id int32, value float64) hostcall.Errno {
	w.observed = append(w.observed, fmt.Sprint(id, " ", value))
	return hostcall.OK
}

// SubmitJob implements [hostcall.Jobs].
func (w *world) SubmitJob(_ *hostcall.Attempt, spec *jobhost.Spec, when hostcall.SubmitTime) (string, error) {
	w.submitted = append(w.submitted, fmt.Sprintf("%d %s %s", when, spec.Worker, spec.Payload))
	return "job-of-" + spec.Worker, nil
}

// Defer implements [hostcall.HTTP].
func (w *world) Defer(_ *hostcall.Attempt, r *hostcall.HTTPRequest, entry string, args []byte) (string, error) {
	w.deferred = append(w.deferred, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, entry, args))
	return "deferred-" + strconv.Itoa(len(w.deferred)), nil
}

// KVGet implements [hostcall.KV].
func (w *world) KVGet(_ *hostcall.Attempt, key []byte) ([]byte, int64, hostcall.Errno) {
	it, ok := w.keys[string(key)]
	if !ok {
		return nil, 0, hostcall.ErrNotFound
	}
	return it.value, it.version, hostcall.OK
}

// KVSet implements [hostcall.KV]; the version stays as it was when it was read.
func (w *world) KVSet(_ *hostcall.Attempt, key, value []byte, _ time.Duration) hostcall.Errno {
	it := w.keys[string(key)]
	it.value = append([]byte(nil), value...)
	w.keys[string(key)] = it
	return hostcall.OK
}

// KVDelete implements [hostcall.KV].
func (w *world) KVDelete(_ *hostcall.Attempt, key []byte) hostcall.Errno {
	delete(w.keys, string(key))
	return hostcall.OK
}

// KVAdd implements [hostcall.KV].
func (w *world) KVAdd(at *hostcall.Attempt, key []byte, delta int64) (int64, hostcall.Errno) {
	n, err := strconv.ParseInt(string(w.keys[string(key)].value), 10, 64)
	if _, there := w.keys[string(key)]; there && err != nil {
		return 0, hostcall.ErrInvalid
	}
	n += delta
	return n, w.KVSet(at, key, strconv.AppendInt(nil, n, 10), 0)
}

// KVCompareAndSet implements [hostcall.KV].
func (w *world) KVCompareAndSet(at *hostcall.Attempt, key []byte, version int64, value []byte) hostcall.Errno {
	if w.keys[string(key)].version != version {
		return hostcall.ErrConflict
	}
	return w.KVSet(at, key, value, 0)
}
