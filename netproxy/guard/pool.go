package guard

import (
	"crypto/tls"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/jobhost/jobhost/internal/httpurl"
)

// pool has a transport for each recently used host. A single transport couldn't
// close the connections to one host.
type pool struct {
	make func(host) *http.Transport

	mu    sync.Mutex // protects hosts
	hosts *simplelru.LRU[host, *entry]
}

// entry is the transport of a host. Requests may still be in flight when it is
// evicted from the pool.
type entry struct {
	*http.Transport
	out atomic.Bool
}

// leave closes the idle connections now, and those in use once they become
// idle.
func (e *entry) leave() {
	e.out.Store(true)
	e.CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper]. A request makes its transport keep
// connections again, even after the entry was evicted; so they are closed here.
func (e *entry) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := e.Transport.RoundTrip(req)
	if e.out.Load() {
		e.CloseIdleConnections()
	}
	return resp, err
}

// host identifies the connections that can be shared.
type host struct {
	secure bool
	name   string
	port   uint16
}

func newPool(cfg *Config, d *dialer) *pool {
	hosts, _ := simplelru.NewLRU(cfg.Hosts, func(_ host, e *entry) { e.leave() }) // fails for sizes below 1
	sessions := tls.NewLRUClientSessionCache(cfg.Hosts)
	return &pool{hosts: hosts, make: func(h host) *http.Transport { return newBase(cfg, d, sessions, h.secure) }}
}

func newBase(cfg *Config, d *dialer, sessions tls.ClientSessionCache, secure bool) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(cfg.HTTP2)
	t := &http.Transport{
		Proxy:                  nil, // one from the environment would be dialled instead of what was judged
		DialContext:            d.dialContext,
		TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12, ClientSessionCache: sessions},
		TLSHandshakeTimeout:    cfg.ConnectTimeout,
		MaxResponseHeaderBytes: cfg.HeaderBytes,
		MaxConnsPerHost:        cfg.ConnsPerHost,
		MaxIdleConnsPerHost:    cfg.IdlePerHost,
		IdleConnTimeout:        cfg.IdleTimeout,
		ReadBufferSize:         cfg.BufferBytes,
		WriteBufferSize:        cfg.BufferBytes,
		DisableCompression:     true, // what is read is what was sent, so that a bound on it holds
		Protocols:              &protocols,
		// A server can make HTTP/2 costly for its client at little cost to itself.
		HTTP2: &http.HTTP2Config{
			MaxDecoderHeaderTableSize:     4 << 10,
			MaxEncoderHeaderTableSize:     4 << 10,
			MaxReadFrameSize:              16 << 10,
			MaxReceiveBufferPerConnection: 1 << 20,
			MaxReceiveBufferPerStream:     64 << 10,
			SendPingTimeout:               cfg.IdleTimeout,
			PingTimeout:                   cfg.ConnectTimeout,
			WriteByteTimeout:              cfg.ConnectTimeout,
		},
	}
	if secure && cfg.HTTP2 && cfg.BytesPerRequest > 0 {
		t.DialContext = d.dialMetered // over HTTP/1.1 every byte received belongs to a response
	}
	if cfg.Proxy != nil {
		t.Proxy = http.ProxyURL(cfg.Proxy)
	}
	return t
}

// of returns the transport of a host.
func (p *pool) of(u httpurl.URL) *entry {
	key := host{secure: u.Scheme == "https", name: u.Host, port: u.Port}
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.hosts.Get(key)
	if !ok {
		e = &entry{Transport: p.make(key)}
		p.hosts.Add(key, e)
	}
	return e
}

func (p *pool) closeIdle() {
	p.mu.Lock()
	transports := p.hosts.Values()
	p.mu.Unlock()
	for _, t := range transports {
		t.CloseIdleConnections()
	}
}
