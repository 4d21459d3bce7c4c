package netproxy

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/version"
	"github.com/jobhost/jobhost/netproxy/guard"
	"github.com/jobhost/jobhost/netproxy/policy"
)

// Config says what a [Client] may reach, how, and how much. Where a request
// states a smaller bound, that one applies to it.
type Config struct {
	Policy policy.Policy
	// Timeout bounds a request from its first attempt to the last byte of its
	// response, redirects and retries included; 0 = [DefaultTimeout].
	Timeout time.Duration
	// IdleTimeout is how long a response that has begun may pause; 0 =
	// [DefaultIdleTimeout].
	IdleTimeout time.Duration
	// MinRate is how many bytes a second a body must deliver, on average over each
	// IdleTimeout spent reading it; 0 = [DefaultMinRate], -1 = no bound.
	MinRate int
	// MaxRequestBytes bounds the body of a request; 0 = [DefaultMaxRequestBytes].
	MaxRequestBytes int64
	// MaxResponseBytes bounds the decoded body of a response; 0 =
	// [DefaultMaxResponseBytes].
	MaxResponseBytes int64
	// MaxRedirects is how many are followed; nil = [DefaultMaxRedirects], 0 =
	// none: redirects are returned as responses.
	MaxRedirects *int
	// MaxRetries is how often a request is resent that didn't reach a server,
	// or may safely be sent twice; nil = [DefaultMaxRetries].
	MaxRetries *int
	// ConnsPerHost bounds the connections to one host; further requests wait. 0
	// = [DefaultConnsPerHost].
	ConnsPerHost int
	// Hosts is the number of hosts to which connections are kept; 0 = [guard.DefaultHosts].
	Hosts int
	// KeepAlive is how long idle connections are kept; 0 = [guard.DefaultIdleTimeout].
	KeepAlive time.Duration
	// DNSTimeout and ConnectTimeout bound the steps to a connection; 0 = those of guard.
	DNSTimeout, ConnectTimeout time.Duration
	// BufferBytes is the size of each of a connection's two buffers; 0 = [guard.DefaultBufferBytes].
	BufferBytes int
	// HTTP1 disables HTTP/2.
	HTTP1 bool
	// Proxy is used for all connections: see [guard.Config]. nil = none.
	Proxy *url.URL
	// RootCAs may sign certificates; nil = those that the system trusts.
	RootCAs *x509.CertPool
	// Forbidden returns addresses that are never dialled, such as those on
	// which the host listens; nil = none.
	Forbidden func() []netip.AddrPort
	// Secrets are added to headers.
	Secrets []Secret
	// Destinations configures the breaker and the rate of each origin.
	Destinations DestinationConfig
	// UserAgent is sent unless the request sets one; "" = jobhost/<version>.
	UserAgent string
	// Observer is notified of what happens; nil = none.
	Observer Observer
	// Logger gets a line for each request, at level debug; nil = none.
	Logger *slog.Logger

	// Resolver, Own and Dial replace the network: see [guard.Config].
	Resolver guard.Resolver
	Own      func() ([]net.Addr, error)
	Dial     func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// DestinationConfig limits the requests to each origin. The zero value means no limits.
type DestinationConfig struct {
	// Breaker opens for an origin that fails: requests to it then fail at once
	// with code breaker_open. Its Key and WhenOpen are not used.
	Breaker jobhost.BreakerPolicy
	// Rate is how many requests may begin; further ones wait for their turn, or
	// fail at once with code rate_limited if it comes after their deadline.
	Rate jobhost.Rate
	// Burst is how many may begin at once; 0 = as many as the rate allows in a tenth of a second.
	Burst int
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	cfg          Config
	redirects    int
	retries      int
	transport    *guard.Transport
	secrets      secrets
	destinations *destinations
	observer     Observer
	logger       *slog.Logger
	own          http.Header // of each request, unless the request overrides it; read-only
	decoders     sync.Pool   // of *gzip.Reader
	watchdogs    sync.Pool   // of *watchdog without an exchange
}

// New returns a client. The error reports everything that is wrong with cfg.
func New(cfg Config) (*Client, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	injected, err := newSecrets(cfg.Secrets)
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, redirects: DefaultMaxRedirects, retries: DefaultMaxRetries,
		secrets: injected, destinations: newDestinations(cfg.Destinations), observer: cfg.Observer, logger: cfg.Logger,
		own: http.Header{"User-Agent": {cfg.UserAgent}, "Accept-Encoding": {encodingGzip}},
	}
	if cfg.MaxRedirects != nil {
		c.redirects = *cfg.MaxRedirects
	}
	if cfg.MaxRetries != nil {
		c.retries = *cfg.MaxRetries
	}
	c.transport = guard.New(guard.Config{
		Policy: cfg.Policy, DNSTimeout: cfg.DNSTimeout, ConnectTimeout: cfg.ConnectTimeout, HeaderBytes: MaxHeaderBytes,
		ConnsPerHost: cfg.ConnsPerHost, IdlePerHost: cfg.ConnsPerHost, IdleTimeout: cfg.KeepAlive, Hosts: cfg.Hosts,
		HTTP2: !cfg.HTTP1, BytesPerRequest: cfg.MaxResponseBytes + 1<<20, BufferBytes: cfg.BufferBytes,
		RootCAs: cfg.RootCAs, Proxy: cfg.Proxy, Forbidden: cfg.Forbidden, Resolver: cfg.Resolver, Own: cfg.Own, Dial: cfg.Dial,
	})
	return c, nil
}

// Check reports everything that is wrong with a configuration.
func (cfg *Config) Check() error {
	errs := checkSecrets(cfg.Secrets)
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"timeout", cfg.Timeout},
		{"idle_timeout", cfg.IdleTimeout},
		{"keep_alive", cfg.KeepAlive},
		{"dns_timeout", cfg.DNSTimeout},
		{"connect_timeout", cfg.ConnectTimeout},
	} {
		if d.value < 0 {
			errs = append(errs, jobhost.Invalid(d.field, "", "%v is negative", jobhost.Duration(d.value)))
		}
	}
	for _, n := range []struct {
		field string
		value int64
	}{
		{"max_request_bytes", cfg.MaxRequestBytes},
		{"max_response_bytes", cfg.MaxResponseBytes},
		{"max_redirects", int64(orZero(cfg.MaxRedirects))},
		{"max_retries", int64(orZero(cfg.MaxRetries))},
		{"conns_per_host", int64(cfg.ConnsPerHost)},
		{"hosts", int64(cfg.Hosts)},
		{"buffer_bytes", int64(cfg.BufferBytes)},
		{"min_rate", int64(cfg.MinRate) + 1},
		{"burst", int64(cfg.Destinations.Burst)},
	} {
		if n.value < 0 {
			errs = append(errs, jobhost.Invalid(n.field, "", "%d is too small", n.value))
		}
	}
	if !isFieldValue(cfg.UserAgent) {
		errs = append(errs, jobhost.Invalid("user_agent", "", "the user agent is not the value of a header field"))
	}
	if p := cfg.Proxy; p != nil && (p.Host == "" || p.Scheme != "http" && p.Scheme != "https") {
		errs = append(errs, jobhost.Invalid("proxy", "write it as http://proxy.example:3128", "the proxy is not a URL of http or https"))
	}
	if b := cfg.Destinations.Breaker; b != (jobhost.BreakerPolicy{}) {
		b.Key, b.WhenOpen = "destination", jobhost.FailWhenOpen
		errs = append(errs, b.Check())
	}
	return errors.Join(errs...)
}

func orZero(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}

func (cfg *Config) setDefaults() {
	orElse(&cfg.Timeout, DefaultTimeout)
	orElse(&cfg.IdleTimeout, DefaultIdleTimeout)
	orElse(&cfg.MinRate, DefaultMinRate)
	orElse(&cfg.MaxRequestBytes, DefaultMaxRequestBytes)
	orElse(&cfg.MaxResponseBytes, DefaultMaxResponseBytes)
	orElse(&cfg.ConnsPerHost, DefaultConnsPerHost)
	orElse(&cfg.UserAgent, "jobhost/"+version.Get().Version)
	if cfg.Observer == nil {
		cfg.Observer = noObserver{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
}

func orElse[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// Close closes idle connections. Requests in flight continue.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Check reports how a request would be judged, without sending it: see
// [guard.Transport.Check].
func (c *Client) Check(ctx context.Context, method, url string) (policy.Verdict, error) {
	return c.transport.Check(ctx, method, url)
}
