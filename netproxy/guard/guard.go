// Package guard makes HTTP transports that reach only what a policy allows.
// Each request is judged by its URL, those of redirects too, and each
// connection by the address that is dialled, after its name was resolved.
package guard

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// Defaults of a [Config].
const (
	DefaultConnectTimeout = 5 * time.Second
	DefaultHeaderBytes    = 64 << 10
)

// Config says what a transport reaches, and how.
type Config struct {
	Policy policy.Policy
	// ConnectTimeout bounds the time to resolve a name and to connect, and
	// again that of the TLS handshake; 0 = [DefaultConnectTimeout].
	ConnectTimeout time.Duration
	// HeaderBytes bounds the header of a response; 0 = [DefaultHeaderBytes].
	HeaderBytes int64
	// IdlePerHost is how many connections to one host are kept for later; 0 = 2.
	IdlePerHost int
	// Resolver resolves names; nil = the system's.
	Resolver *net.Resolver
	// Own returns the addresses of this machine; nil = those of its interfaces.
	Own func() ([]net.Addr, error)
}

// Transport is an [http.RoundTripper]. It keeps no cookies, follows no
// redirects, knows no proxy, speaks HTTP/1.1 and goes over to nothing else, and
// checks certificates. It is safe for many goroutines.
type Transport struct {
	policy policy.Policy
	own    func() ([]net.Addr, error)
	base   *http.Transport
}

// New returns a transport.
func New(cfg Config) *Transport {
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = DefaultConnectTimeout
	}
	if cfg.HeaderBytes == 0 {
		cfg.HeaderBytes = DefaultHeaderBytes
	}
	if cfg.Own == nil {
		cfg.Own = net.InterfaceAddrs
	}
	t := &Transport{policy: cfg.Policy, own: cfg.Own}
	dialer := &net.Dialer{Timeout: cfg.ConnectTimeout, Resolver: cfg.Resolver, ControlContext: t.control}
	// A server can make HTTP/2 costly for its client, and pays little for that.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	t.base = &http.Transport{
		Proxy:                  nil, // one from the environment would be dialled in place of what was judged
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    cfg.ConnectTimeout,
		MaxResponseHeaderBytes: cfg.HeaderBytes,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    cfg.IdlePerHost,
		IdleConnTimeout:        30 * time.Second,
		DisableCompression:     true, // what is read is what was sent, so that a bound on it holds
		Protocols:              &protocols,
	}
	return t
}

// control judges the address of a connection that is about to be made.
func (t *Transport) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &policy.SpecialError{Kind: "not an address"}
	}
	if err := t.policy.JudgeAddr(to.Addr()); err != nil {
		return err
	}
	addrs, err := t.own()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(addrs, func(a net.Addr) bool { return isAddr(a, to.Addr()) }) {
		return t.policy.JudgeOwn(to.Addr())
	}
	return nil
}

func isAddr(of net.Addr, addr netip.Addr) bool {
	ip, ok := of.(*net.IPNet)
	if !ok {
		return false
	}
	own, ok := netip.AddrFromSlice(ip.IP)
	return ok && own.Unmap() == addr.Unmap()
}

// RoundTrip sends a request to where its URL says, whatever its Host says, if
// the policy allows that. Denials are the errors of [policy.Denied].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	u, to, err := t.judge(req)
	if err != nil {
		if req.Body != nil {
			err = errors.Join(err, req.Body.Close())
		}
		return nil, err
	}
	sent := req.Clone(req.Context())
	sent.URL, sent.Host = to, ""
	resp, err := t.base.RoundTrip(sent)
	if special, denied := errors.AsType[*policy.SpecialError](err); denied {
		return nil, policy.Denied(u, special)
	}
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		// Its body would be the connection, which knows nothing of the request's context.
		return nil, errors.Join(errUpgrade, resp.Body.Close())
	}
	return resp, err
}

var errUpgrade = errors.New("the answer goes over to another protocol")

// judge returns the URL that is allowed, in the form in which it was judged.
func (t *Transport) judge(req *http.Request) (httpurl.URL, *url.URL, error) {
	u, err := httpurl.Parse(req.URL.String())
	if e, ok := errors.AsType[*httpurl.Error](err); ok {
		return u, nil, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "url", Message: e.Message, Hint: e.Hint}
	}
	if err := t.policy.Judge(req.Method, u); err != nil {
		return u, nil, err
	}
	to, err := url.Parse(u.String())
	return u, to, err
}

// CloseIdleConnections closes the connections that nobody uses.
func (t *Transport) CloseIdleConnections() { t.base.CloseIdleConnections() }
