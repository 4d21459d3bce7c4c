package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Times and bounds of connections between hosts.
const (
	dialTime      = 2 * time.Second
	handshakeTime = 3 * time.Second
	pingTime      = 2 * time.Second // of silence, after which the other side is asked whether it lives, and has to answer
	idleTime      = time.Minute
	shutdownTime  = 2 * time.Second // in which the requests of other hosts may end
	maxStreams    = 8192            // requests at once over one connection
	streamWindow  = 256 << 10       // bytes that a request may be ahead of its reader
	connWindow    = 64 << 20        // and all together: one whose reader is stuck must not stop the others
	maxAnswer     = 64 << 10        // of the header of an answer
	// maxHeader is the largest header of a request, of which HTTP/2 counts a field with 32 bytes more: whatever the API takes of
	// a client fits. What doesn't could not be sent, as if the leader were lost.
	maxHeader = 512 << 10
)

// What hosts say to each other besides what clients do.
const (
	// watchPath is answered when the term of the leader ends. It is none that clients can reach: what they send
	// carries clientHeader.
	watchPath = "/cluster/watch"
	// lookPath makes the leader look at once at what was asked of hosts, instead of at its next heartbeat.
	lookPath = "/cluster/look"
	// clientHeader is the address of the client that a request comes from.
	clientHeader = "Jobhost-Client"
	// astrayHeader says that a request was not carried out, since this host does not lead.
	astrayHeader = "Jobhost-Astray"
)

// peer is another host.
type peer struct {
	name, address string
	transport     *http.Transport
	reached       atomic.Bool  // it answers
	heard         atomic.Int64 // when it last said anything, in nanoseconds since began
}

// began is what times of peers are counted from: it has a monotonic clock, which a number hasn't.
var began = time.Now()

// lastHeard is when the peer last said anything. One that lives says something every [pingTime] at least.
func (p *peer) lastHeard() time.Time { return began.Add(time.Duration(p.heard.Load())) }

// heardConn is a connection to a peer that notes when something came over it.
type heardConn struct {
	net.Conn
	peer *peer
}

// Read implements [net.Conn].
func (c *heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.peer.heard.Store(int64(time.Since(began)))
	}
	return n, err
}

func (p *peer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &heardConn{conn, p}, nil
}

func (m *Member) newPeer(name, address string) *peer {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	p := &peer{name: name, address: address}
	p.transport = &http.Transport{
		DialContext:            p.dial,
		TLSClientConfig:        m.identity.config(m.keys.host(name)),
		TLSHandshakeTimeout:    handshakeTime,
		IdleConnTimeout:        idleTime,
		ExpectContinueTimeout:  stall, // a host that begins to lead takes its time
		MaxResponseHeaderBytes: maxAnswer,
		DisableCompression:     true,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingTime, PingTimeout: pingTime, MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow},
	}
	return p
}

// newPeerServer returns the server that other hosts reach this one by.
func (m *Member) newPeerServer() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return &http.Server{
		Handler:           http.HandlerFunc(m.servePeer),
		ConnState:         admitted,
		TLSConfig:         m.identity.config(m.keys.anyHost),
		ReadHeaderTimeout: handshakeTime,
		IdleTimeout:       2 * idleTime,
		MaxHeaderBytes:    maxHeader,
		Protocols:         protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, SendPingTimeout: pingTime, PingTimeout: pingTime,
			MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow,
		},
		ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelDebug),
	}
}

func (m *Member) servePeers() error {
	if err := m.peers.ServeTLS(&gate{Listener: m.listener}, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve other hosts: %w", err)
	}
	return nil
}

// shutdown lets the requests of other hosts end for a while.
func shutdown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close() // those that go on are ended
	}
}

// servePeer answers a host: what a client has asked of it, or a watch.
func (m *Member) servePeer(w http.ResponseWriter, r *http.Request) {
	client := r.Header[clientHeader]
	switch {
	case len(client) == 1:
		delete(r.Header, clientHeader)
		r.RemoteAddr = client[0]
		m.serveClientOfPeer(w, r)
	case r.URL.Path == watchPath:
		m.serveWatch(w, r)
	case r.URL.Path == lookPath:
		m.lookNow(r.Context())
	default:
		http.NotFound(w, r)
	}
}

// serveClientOfPeer answers a client of another host, which takes this one for the leader.
func (m *Member) serveClientOfPeer(w http.ResponseWriter, r *http.Request) {
	term, ended := m.leading()
	var to *route
	if term != nil {
		ctx, cancel := context.WithTimeout(r.Context(), m.cfg.Patience)
		defer cancel()
		to = m.front.awaitLocal(ctx, ended)
	}
	if to == nil || !to.local.serve(func(handler http.Handler) { handler.ServeHTTP(w, r) }) {
		w.Header().Set(astrayHeader, "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// serveWatch answers when the term of this host ends.
func (m *Member) serveWatch(w http.ResponseWriter, r *http.Request) {
	_, ended := m.leading()
	if ended == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
	if http.NewResponseController(w).Flush() != nil {
		return
	}
	select {
	case <-ended:
	case <-r.Context().Done():
	}
}
