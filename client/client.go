// Package client talks to a jobhost over its HTTP API. A [Client] answers the
// same questions in the same way as a host in the same process: it is a
// [jobhost.Server], and its errors carry the same codes.
package client

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// Client asks one host. It is safe for use by many goroutines, and holds no
// more than idle connections, see [Client.Close].
type Client struct {
	base        string // without a slash at its end
	token       string
	http        *http.Client
	timeout     time.Duration
	maxResponse int64
	err         error // of the base; every call returns it
}

var _ jobhost.Server = (*Client)(nil)

// Option changes how a client works.
type Option func(*Client)

// WithHTTPClient makes the client use h, for its transport (TLS, proxies,
// tracing). It should follow no redirects, which would carry the token elsewhere,
// and have no timeout, which would end waits and events.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithTimeout bounds calls that neither wait nor watch, besides their context;
// the default is 60 s.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// WithMaxResponse bounds what is read of one answer, in bytes; the default is
// 64 MiB. Larger ones give an error with code too_large.
func WithMaxResponse(n int64) Option { return func(c *Client) { c.maxResponse = n } }

// New returns a client of the host at base, such as "http://127.0.0.1:7070";
// http:// may be left out. Without a token only reading is possible. It opens
// no connection; a base that is no URL is reported by every call.
func New(base, token string, options ...Option) *Client {
	c := &Client{token: token, timeout: time.Minute, maxResponse: 64 << 20}
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	c.base = strings.TrimRight(base, "/")
	u, err := url.Parse(c.base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "http" && u.Scheme != "https" {
		c.err = &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: jobhost.FieldURL, Cause: err,
			Message: "the address of the host is not a URL", Hint: "write it as in http://127.0.0.1:7070",
		}
	}
	for _, option := range options {
		option(c)
	}
	if c.http == nil {
		c.http = &http.Client{Transport: newTransport(), CheckRedirect: noRedirect}
	}
	return c
}

// Close closes the connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// newTransport returns a transport for many calls at once to one host.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    512, // the default of 2 closes most connections right after use
		IdleConnTimeout:        50 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// proxy never takes a detour to this machine, whatever the environment says.
func proxy(r *http.Request) (*url.URL, error) {
	if ip, err := netip.ParseAddr(r.URL.Hostname()); err == nil && ip.IsLoopback() {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
