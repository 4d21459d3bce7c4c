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
	pingTime      = 2 * time.Second // of silence before a ping, and until its answer
	idleTime      = time.Minute
	shutdownTime  = 2 * time.Second // for requests of other hosts to end
	maxStreams    = 8192            // requests at once over one connection
	streamWindow  = 256 << 10       // bytes that a request may be ahead of its reader
	connWindow    = 64 << 20        // and all together: one whose reader is stuck must not stop the others
	maxAnswer     = 64 << 10        // of the header of an answer
	// maxHeader is the largest header of a request, of which HTTP/2 counts a field with 32 bytes more: whatever the API takes of
	// a client fits. What doesn't could not be sent, as if the leader were lost.
	maxHeader = 512 << 10
)

// What hosts send to each other besides requests of clients.
const (
	// watchPath is answered when the leader's term ends. Clients can't reach it, since their requests have clientHeader.
	watchPath = "/cluster/watch"
	// lookPath makes the leader read drains and wishes now, instead of at its next heartbeat.
	lookPath = "/cluster/look"
	// clientHeader has the address of the client whose request is forwarded.
	clientHeader = "Jobhost-Client"
	// notLeaderHeader says that a request was not carried out because the host does not lead.
	notLeaderHeader = "Jobhost-Astray"
)

// peer is another host.
type peer struct {
	name, address string
	transport     *http.Transport
	reached       atomic.Bool  // the watch is connected to it
	heard         atomic.Int64 // when something last came from it, in nanoseconds since began
}

// began is the origin of the times in peers, which as plain numbers have no monotonic clock of their own.
var began = time.Now()

// lastHeard is when something last came from the peer. A live one sends something every [pingTime] at least.
func (p *peer) lastHeard() time.Time { return began.Add(time.Duration(p.heard.Load())) }

// heardConn is a connection to a peer that notes when something comes from it.
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
		ExpectContinueTimeout:  partTimeout, // a host that begins to lead takes its time
		MaxResponseHeaderBytes: maxAnswer,
		DisableCompression:     true,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingTime, PingTimeout: pingTime, MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow},
	}
	return p
}

// newPeerServer returns the server for other hosts.
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

// shutdown gives the requests of other hosts some time to end.
func shutdown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close() // cuts off the rest
	}
}

// servePeer answers another host: a forwarded request, a watch, or a hint to look at wishes.
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
		m.refreshHosts(r.Context())
	default:
		http.NotFound(w, r)
	}
}

// serveClientOfPeer answers a request that another host forwards because it takes this one for the leader.
func (m *Member) serveClientOfPeer(w http.ResponseWriter, r *http.Request) {
	term, ended := m.leading()
	var to *route
	if term != nil {
		ctx, cancel := context.WithTimeout(r.Context(), m.cfg.RequestWait)
		defer cancel()
		to = m.front.awaitLocal(ctx, ended)
	}
	if to == nil || !to.local.serve(func(handler http.Handler) { handler.ServeHTTP(w, r) }) {
		w.Header().Set(notLeaderHeader, "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// serveWatch keeps the answer open until the term of this host ends.
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
