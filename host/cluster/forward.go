package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxHeld is the largest body that is kept in memory, so that it can be sent again.
	maxHeld = 16 << 10
	// partTimeout is how long a client may take to send or receive the next part of a body.
	partTimeout = 30 * time.Second
)

// call is a request that is forwarded, perhaps to several leaders in turn.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController

	held []byte // the body, if it is small
	body *body  // if it is large; nil = it is small, or there is none

	// Of the last attempt:
	to   *route
	err  error       // why there is no answer
	sent atomic.Bool // there was a connection, so some of it may have been sent
}

func newCall(w http.ResponseWriter, r *http.Request) *call {
	return &call{w: w, r: r, control: http.NewResponseController(w)}
}

// hold reads a small body into memory, and prepares a large one for being streamed.
func (c *call) hold() (err error) {
	// The leader limits how long a request may take; this host limits how long a client may be silent.
	defer func() { err = errors.Join(err, c.clearDeadlines()) }()
	switch n := c.r.ContentLength; {
	case n == 0:
		return nil
	case n > 0 && n <= maxHeld:
		c.held = make([]byte, n)
		_, err = io.ReadFull(c.r.Body, c.held)
		return err
	}
	c.body = &body{from: c.r.Body, control: c.control}
	_ = c.control.EnableFullDuplex() // HTTP/2 always has it
	return nil
}

// clearDeadlines removes the deadlines that the server has set for the request and its answer.
func (c *call) clearDeadlines() error {
	if err := c.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if err := c.control.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// attempt returns the request to send in an attempt.
func (c *call) attempt(ctx context.Context) *http.Request {
	r := c.r.Clone(ctx)
	switch {
	case c.held != nil:
		r.Body = io.NopCloser(bytes.NewReader(c.held))
	case c.body != nil:
		r.Body = &attemptBody{body: c.body}
	default:
		r.Body = http.NoBody
	}
	return r
}

// end bounds the time in which the server reads what the leader didn't want of the body.
func (c *call) end() {
	if c.body != nil {
		_ = c.control.SetReadDeadline(time.Now().Add(partTimeout))
	}
}

// serve answers on this host, with deadlines as usual.
func (c *call) serve(handler http.Handler) {
	_ = c.control.SetReadDeadline(time.Now().Add(partTimeout))
	_ = c.control.SetWriteDeadline(time.Now().Add(partTimeout))
	handler.ServeHTTP(c.w, c.attempt(c.r.Context()))
}

// forward sends the request to a leader, and gives up when limit ends, or if there is no connection by a time. Unless it sets
// c.err the client has its answer.
func (c *call) forward(limit context.Context, proxy http.Handler, to *route, until time.Time) {
	c.to, c.err = to, nil
	c.sent.Store(false)
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	defer context.AfterFunc(to.ctx, cancel)()
	defer context.AfterFunc(limit, cancel)()
	late := time.AfterFunc(time.Until(until), func() {
		if !c.sent.Load() {
			cancel()
		}
	})
	defer late.Stop()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { c.sent.Store(true) }})
	r := c.attempt(context.WithValue(ctx, callKey{}, c))
	// A client that offers to go on in another protocol takes an answer, too. HTTP/2, which hosts speak with each other, knows
	// no such offer: to send one would fail, as if the leader were lost.
	r.Header.Del("Upgrade")
	defer func() {
		if once, ok := r.Body.(*attemptBody); ok {
			once.seal()
		}
		_ = c.clearDeadlines() // another leader may be asked
	}()
	proxy.ServeHTTP(&deadlineWriter{ResponseWriter: c.w, control: c.control}, r)
}

// mayRepeat reports whether the request can be sent to another leader, after an attempt that failed before its answer began.
// It can if it was certainly not carried out, because there was no connection or the host said so, or if carrying it out
// twice does no harm: it only reads, or the API calls it repeatable, such as a submit with an id. A large body of which some
// was read can't be sent again.
func (c *call) mayRepeat(repeatable func(*http.Request, []byte) bool) bool {
	if c.body != nil && c.body.begun() {
		return false
	}
	if c.notCarriedOut() {
		return true
	}
	if isSafe(c.r.Method) {
		return true
	}
	return c.held != nil && repeatable != nil && repeatable(c.r, c.held)
}

func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// notCarriedOut reports whether the last attempt was certainly not carried out.
func (c *call) notCarriedOut() bool { return !c.sent.Load() || errors.Is(c.err, errNotLeader) }

// callKey is the key of a call in the context of its attempts.
type callKey struct{}

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

var errNotLeader = errors.New("the host does not lead")

// newProxy returns the proxy that forwards attempts of calls.
func (f *front) newProxy() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to := callOf(r.In).to
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", to.peer.address, r.In.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery // unchanged: the leader checks it
			r.Out.Header[clientHeader] = []string{r.In.RemoteAddr}
			if _, ok := r.In.Header["User-Agent"]; !ok {
				r.Out.Header["User-Agent"] = nil // keeps net/http from adding one
			}
			if callOf(r.In).body != nil {
				// The body is not read until the leader asks for it, so that it can go elsewhere if this host no longer leads.
				r.Out.Header["Expect"] = []string{"100-continue"}
			}
			// By these the leader knows that there is a proxy. A client must not remove them, not by naming them in Connection either.
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via"} {
				if values, ok := r.In.Header[name]; ok {
					r.Out.Header[name] = values
				}
			}
		},
		Transport:     roundTrip(func(r *http.Request) (*http.Response, error) { return callOf(r).to.peer.transport.RoundTrip(r) }),
		FlushInterval: -1,
		BufferPool:    &buffers{},
		ErrorLog:      slog.NewLogLogger(f.member.log.Handler(), slog.LevelDebug),
		ModifyResponse: func(resp *http.Response) error {
			if resp.Header.Get(notLeaderHeader) != "" {
				return errNotLeader
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { callOf(r).err = err },
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// buffers are for copying answers.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

// Put implements [httputil.BufferPool].
func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }

// body is a large body, streamed to the leader.
type body struct {
	from    io.ReadCloser
	control *http.ResponseController

	mu    sync.Mutex // protects taken
	taken bool       // reading has begun
}

func (b *body) begun() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken
}

// attemptBody is a body during one attempt. Reads that come after the attempt fail, so that they take nothing from the next.
type attemptBody struct {
	body   *body
	sealed bool // protected by body.mu
}

var errSealed = errors.New("the attempt has ended")

// Read sets the client a deadline for the next part.
func (o *attemptBody) Read(p []byte) (int, error) {
	o.body.mu.Lock()
	if o.sealed {
		o.body.mu.Unlock()
		return 0, errSealed
	}
	o.body.taken = true
	o.body.mu.Unlock()
	_ = o.body.control.SetReadDeadline(time.Now().Add(partTimeout))
	n, err := o.body.from.Read(p)
	if err != nil {
		_ = o.body.control.SetReadDeadline(time.Time{}) // the server keeps reading, to notice when the client disconnects
	}
	return n, err
}

// Close implements [io.Closer]. It does nothing, since the server closes the body.
func (o *attemptBody) Close() error { return nil }

func (o *attemptBody) seal() {
	o.body.mu.Lock()
	defer o.body.mu.Unlock()
	o.sealed = true
}

// deadlineWriter sets the client a deadline for each part of an answer.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Unwrap is for [http.ResponseController].
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *deadlineWriter) Write(b []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(partTimeout))
	return w.ResponseWriter.Write(b)
}
