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
	// maxHeld is the largest body that is held in memory, so that it can be sent again.
	maxHeld = 16 << 10
	// stall is how long a client may take for the next part of what it sends or gets.
	stall = 30 * time.Second
)

// call is a request that is passed on, perhaps to several leaders, one after the other.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController

	held []byte // the body, if it is small
	body *body  // if it isn't; nil = it is, or there is none

	// Of the last attempt:
	to   *route
	err  error       // why there is no answer
	sent atomic.Bool // a connection was there to send it on
}

func newCall(w http.ResponseWriter, r *http.Request) *call {
	return &call{w: w, r: r, control: http.NewResponseController(w)}
}

// hold reads a small body, and prepares a large one for being passed on as it comes.
func (c *call) hold() (err error) {
	// The leader bounds how long a request may take, and this host how long a client may do nothing.
	defer func() { err = errors.Join(err, c.unbound()) }()
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

// unbound ends the times that the server gives a request and its answer.
func (c *call) unbound() error {
	if err := c.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if err := c.control.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// again is the request for one attempt.
func (c *call) again(ctx context.Context) *http.Request {
	r := c.r.Clone(ctx)
	switch {
	case c.held != nil:
		r.Body = io.NopCloser(bytes.NewReader(c.held))
	case c.body != nil:
		r.Body = &bodyOnce{body: c.body}
	default:
		r.Body = http.NoBody
	}
	return r
}

// end bounds the time in which the server reads what the leader didn't want of the body.
func (c *call) end() {
	if c.body != nil {
		_ = c.control.SetReadDeadline(time.Now().Add(stall))
	}
}

// serve answers on this host, which bounds the times again.
func (c *call) serve(handler http.Handler) {
	_ = c.control.SetReadDeadline(time.Now().Add(stall))
	_ = c.control.SetWriteDeadline(time.Now().Add(stall))
	handler.ServeHTTP(c.w, c.again(c.r.Context()))
}

// forward passes the request on until limit ends, if there is a connection before a time. Unless err is set it was answered.
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
	r := c.again(context.WithValue(ctx, callKey{}, c))
	// A client that offers to go on in another protocol takes an answer, too. HTTP/2, which hosts speak with each other, knows
	// no such offer: to send one would fail, as if the leader were lost.
	r.Header.Del("Upgrade")
	defer func() {
		if once, ok := r.Body.(*bodyOnce); ok {
			once.seal()
		}
		_ = c.unbound() // another leader may be asked
	}()
	proxy.ServeHTTP(&patientWriter{ResponseWriter: c.w, control: c.control}, r)
}

// mayRepeat reports whether the request can be sent to another leader after the last attempt failed before an answer
// began. It can if it was surely not carried out, because no connection was made or the host said so; or if that does no
// harm, because it only reads or is one that the API calls repeatable, such as a submit with an id. A body that was
// partly sent is gone.
func (c *call) mayRepeat(repeatable func(*http.Request, []byte) bool) bool {
	if c.body != nil && c.body.begun() {
		return false
	}
	if c.undone() {
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

// undone reports whether the last attempt was surely not carried out.
func (c *call) undone() bool { return !c.sent.Load() || errors.Is(c.err, errAstray) }

// callKey is that of a call in the context of its attempts.
type callKey struct{}

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

var errAstray = errors.New("the host does not lead")

// newProxy returns what passes on the attempts of calls.
func (f *front) newProxy() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to := callOf(r.In).to
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", to.peer.address, r.In.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery // the leader judges it
			r.Out.Header[clientHeader] = []string{r.In.RemoteAddr}
			if _, ok := r.In.Header["User-Agent"]; !ok {
				r.Out.Header["User-Agent"] = nil // none is made up
			}
			if callOf(r.In).body != nil {
				// It isn't read before the leader wants it: from a host that doesn't lead any more it goes to the next one.
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
			if resp.Header.Get(astrayHeader) != "" {
				return errAstray
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { callOf(r).err = err },
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// buffers are those of answers that are passed on.
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

// body is that of a client, passed on as it comes.
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

// bodyOnce is a body in one attempt: what goes on reading after it gets nothing.
type bodyOnce struct {
	body   *body
	sealed bool // protected by body.mu
}

var errSealed = errors.New("the attempt has ended")

// Read gives the client time for the next part.
func (o *bodyOnce) Read(p []byte) (int, error) {
	o.body.mu.Lock()
	if o.sealed {
		o.body.mu.Unlock()
		return 0, errSealed
	}
	o.body.taken = true
	o.body.mu.Unlock()
	_ = o.body.control.SetReadDeadline(time.Now().Add(stall))
	n, err := o.body.from.Read(p)
	if err != nil {
		_ = o.body.control.SetReadDeadline(time.Time{}) // the server goes on reading, to notice when the client goes
	}
	return n, err
}

// Close implements [io.Closer]; the body is the server's.
func (o *bodyOnce) Close() error { return nil }

func (o *bodyOnce) seal() {
	o.body.mu.Lock()
	defer o.body.mu.Unlock()
	o.sealed = true
}

// patientWriter gives the client time for each part of an answer.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Unwrap is how [http.ResponseController] reaches the connection.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *patientWriter) Write(b []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(stall))
	return w.ResponseWriter.Write(b)
}
