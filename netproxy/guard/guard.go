// Package guard makes HTTP transports that reach only what a policy allows. Each
// request is judged by its URL, including those of redirects, and each connection by
// the address that is dialled, after its name was resolved. If a name has several
// addresses, they are dialled with a head start for each, in goroutines that end with
// the attempt.
package guard

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// Defaults of a [Config].
const (
	DefaultDNSTimeout     = 5 * time.Second
	DefaultConnectTimeout = 5 * time.Second
	DefaultIdleTimeout    = 30 * time.Second
	DefaultHeaderBytes    = 64 << 10
	DefaultHosts          = 100
	DefaultBufferBytes    = 4 << 10
)

// Config says what a transport may reach, and how.
type Config struct {
	Policy policy.Policy
	// DNSTimeout bounds the time to resolve a name; 0 = [DefaultDNSTimeout].
	DNSTimeout time.Duration
	// ConnectTimeout bounds the time to connect, and separately that of the TLS
	// handshake; 0 = [DefaultConnectTimeout].
	ConnectTimeout time.Duration
	// HeaderBytes bounds the header of a response; 0 = [DefaultHeaderBytes].
	HeaderBytes int64
	// ConnsPerHost limits the connections to one host; further requests wait
	// for one. 0 = no limit.
	ConnsPerHost int
	// IdlePerHost is how many idle connections to one host are kept; 0 = 2.
	IdlePerHost int
	// IdleTimeout is how long they are kept; 0 = [DefaultIdleTimeout].
	IdleTimeout time.Duration
	// Hosts is the number of hosts to which connections are kept. Beyond it,
	// those to the least recently used host are closed; 0 = [DefaultHosts].
	Hosts int
	// HTTP2 allows HTTP/2 over TLS with servers that offer it.
	HTTP2 bool
	// BytesPerRequest bounds what a connection receives for each request sent
	// over it, of whatever kind; 0 = no bound. HTTP/2 has frames that cost a
	// server little and belong to no response.
	BytesPerRequest int64
	// BufferBytes is the size of a connection's buffers, one for each direction;
	// 0 = [DefaultBufferBytes].
	BufferBytes int
	// RootCAs may sign certificates; nil = those that the system trusts.
	RootCAs *x509.CertPool
	// Proxy is used for all connections; proxies from the environment never
	// are. Judging the addresses of names is then up to the proxy; rules and
	// addresses in URLs are still judged here. nil = none.
	Proxy *url.URL
	// Forbidden returns addresses that are never dialled, whatever else is allowed, such as
	// those where the host itself is controlled. An entry without an address (0.0.0.0 or ::)
	// means that port on all of this machine's addresses. nil = none.
	Forbidden func() []netip.AddrPort
	// Resolver resolves names; nil = the system's.
	Resolver Resolver
	// Own returns the addresses of this machine; nil = those of its interfaces.
	Own func() ([]net.Addr, error)
	// Dial connects to an address that has been judged; nil = over TCP.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Resolver resolves names. [*net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Transport is an [http.RoundTripper]. It keeps no cookies, follows no
// redirects, uses no proxy but a configured one, refuses protocol upgrades, and
// checks certificates. It is safe for concurrent use.
type Transport struct {
	policy policy.Policy
	dialer *dialer
	pool   *pool
	meter  bool
}

// New returns a transport.
func New(cfg Config) *Transport {
	orElse(&cfg.DNSTimeout, DefaultDNSTimeout)
	orElse(&cfg.ConnectTimeout, DefaultConnectTimeout)
	orElse(&cfg.IdleTimeout, DefaultIdleTimeout)
	orElse(&cfg.HeaderBytes, DefaultHeaderBytes)
	orElse(&cfg.Hosts, DefaultHosts)
	orElse(&cfg.BufferBytes, DefaultBufferBytes)
	if cfg.Own == nil {
		cfg.Own = net.InterfaceAddrs
	}
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	d := newDialer(&cfg)
	return &Transport{policy: cfg.Policy, dialer: d, pool: newPool(&cfg, d), meter: cfg.BytesPerRequest > 0}
}

func orElse[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// RoundTrip sends a request to the host in its URL, regardless of its Host
// field, if the policy allows it. Denials are the errors of [policy.Denied].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	u, _, to, err := httpurl.ParseTarget(req.URL.String())
	if err != nil {
		if e, ok := errors.AsType[*httpurl.Error](err); ok {
			err = &jobhost.Error{Code: jobhost.CodeInvalid, Field: "url", Message: e.Message, Hint: e.Hint}
		}
		return nil, errors.Join(err, closeBody(req))
	}
	sent := req.WithContext(t.Watch(req.Context(), nil)) // a copy
	sent.URL, sent.Host = to, ""
	return t.Send(sent, u)
}

func closeBody(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	return req.Body.Close()
}

// maxInterim is how many interim responses (1xx) a server may send for one request.
const maxInterim = 16

// Watcher is notified of the progress of requests.
type Watcher interface {
	// Connected is called when a request has a connection, before anything is
	// sent. It is called again if that connection turns out to be closed.
	Connected(reused bool)
	// FirstByte is called when the response begins.
	FirstByte()
	// Interim is called after an interim response (1xx): the preceding FirstByte did not
	// announce the final response, and may not be called again.
	Interim()
}

// Watch returns a context for [Transport.Send], which reports the progress of its
// request to watcher; nil = no watcher.
func (t *Transport) Watch(ctx context.Context, watcher Watcher) context.Context {
	if watcher == nil {
		if !t.meter {
			return ctx
		}
		watcher = unwatched{}
	}
	w := &watch{watcher: watcher, meter: t.meter}
	w.trace = httptrace.ClientTrace{GotConn: w.connected, GotFirstResponseByte: watcher.FirstByte, Got1xxResponse: w.interim}
	return httptrace.WithClientTrace(ctx, &w.trace)
}

// watch holds all that a trace needs in one allocation, since there is one for each request.
type watch struct {
	trace    httptrace.ClientTrace
	watcher  Watcher
	meter    bool
	interims int // so far; attempts are sequential
}

func (w *watch) connected(info httptrace.GotConnInfo) {
	if w.meter {
		grant(info.Conn)
	}
	w.watcher.Connected(info.Reused)
}

func (w *watch) interim(int, textproto.MIMEHeader) error {
	if w.interims++; w.interims > maxInterim {
		return errFlood{}
	}
	w.watcher.Interim()
	return nil
}

// unwatched is a Watcher that does nothing.
type unwatched struct{}

func (unwatched) Connected(bool) {}
func (unwatched) FirstByte()     {}
func (unwatched) Interim()       {}

// Send is [Transport.RoundTrip] for callers that already have the URL in
// canonical form: req.URL must be u, req.Host empty, and the context one of
// [Transport.Watch].
func (t *Transport) Send(req *http.Request, u httpurl.URL) (*http.Response, error) {
	if err := t.policy.Judge(req.Method, u); err != nil {
		return nil, errors.Join(err, closeBody(req))
	}
	resp, err := t.pool.of(u).RoundTrip(req)
	if special, denied := errors.AsType[*policy.SpecialError](err); denied {
		if !u.Addr.IsValid() && !t.policy.Names(u.Host) {
			// Authors of requests, who choose names matched by a wildcard, must not find out which exist.
			return nil, &net.DNSError{UnwrapErr: special, Err: "no address that may be reached", Name: u.Host, IsNotFound: true}
		}
		return nil, policy.Denied(u, special)
	}
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		// Its body would be the connection, which is not bound to the request's context.
		return nil, errors.Join(errUpgrade, resp.Body.Close())
	}
	return resp, err
}

var errUpgrade = errors.New("the answer goes over to another protocol")

// CloseIdleConnections closes the idle connections.
func (t *Transport) CloseIdleConnections() { t.pool.closeIdle() }
