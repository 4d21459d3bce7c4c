package guard

import (
	"crypto/tls"
	"net/http"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/jobhost/jobhost/internal/httpurl"
)

// pool has a transport for each of the hosts that were asked lately. One for all
// couldn't close the connections to a single host.
type pool struct {
	make func(host) *http.Transport

	mu    sync.Mutex // protects hosts
	hosts *simplelru.LRU[host, *http.Transport]
}

// host is what connections belong to.
type host struct {
	secure bool
	name   string
	port   uint16
}

func newPool(cfg *Config, d *dialer) *pool {
	// Requests under way keep the transport that is removed; when they end
	// their connections are closed, since nobody will ask it again.
	hosts, _ := simplelru.NewLRU(cfg.Hosts, func(_ host, t *http.Transport) { t.CloseIdleConnections() }) // fails for sizes below 1
	sessions := tls.NewLRUClientSessionCache(cfg.Hosts)
	return &pool{hosts: hosts, make: func(h host) *http.Transport { return newBase(cfg, d, sessions, h.secure) }}
}

func newBase(cfg *Config, d *dialer, sessions tls.ClientSessionCache, secure bool) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(cfg.HTTP2)
	t := &http.Transport{
		Proxy:                  nil, // one from the environment would be dialled in place of what was judged
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
		// A server can make HTTP/2 costly for its client, and pays little for that.
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
		t.DialContext = d.dialMetered // with HTTP/1.1 all that may come belongs to a response
	}
	if cfg.Proxy != nil {
		t.Proxy = http.ProxyURL(cfg.Proxy)
	}
	return t
}

// of returns the transport of a host.
func (p *pool) of(u httpurl.URL) *http.Transport {
	key := host{secure: u.Scheme == "https", name: u.Host, port: u.Port}
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.hosts.Get(key)
	if !ok {
		t = p.make(key)
		p.hosts.Add(key, t)
	}
	return t
}

func (p *pool) closeIdle() {
	p.mu.Lock()
	transports := p.hosts.Values()
	p.mu.Unlock()
	for _, t := range transports {
		t.CloseIdleConnections()
	}
}
