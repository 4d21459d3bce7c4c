package cluster

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// maxStrangers is how many connections may be open over which no key of the cluster has come yet. A host's is there within
// milliseconds, and then its connection doesn't count any more.
const maxStrangers = 128

// gate is a listener for other hosts. Anyone on the network can connect to it. When too many connections have not shown a key,
// it closes the oldest of them, so that strangers can't use up its memory and files, or keep hosts out.
type gate struct {
	net.Listener

	mu        sync.Mutex // protects strangers, and place of connections
	strangers list.List  // of *gateConn, the oldest first
}

// gateConn is a connection to a [gate].
type gateConn struct {
	net.Conn
	gate  *gate
	place *list.Element // among the strangers; nil = it is not one of them
}

// Accept implements [net.Listener].
func (g *gate) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &gateConn{Conn: conn, gate: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.strangers.Len() >= maxStrangers {
		oldest := g.strangers.Remove(g.strangers.Front()).(*gateConn)
		oldest.place = nil
		_ = oldest.Conn.Close() // the server closes it again
	}
	c.place = g.strangers.PushBack(c)
	return c, nil
}

// admit takes a connection out of the strangers.
func (c *gateConn) admit() {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.place != nil {
		c.gate.strangers.Remove(c.place)
		c.place = nil
	}
}

// Close implements [net.Conn].
func (c *gateConn) Close() error {
	c.admit()
	return c.Conn.Close()
}

// admitted is an [http.Server]'s ConnState: HTTP begins when the key of the other side was accepted.
func admitted(conn net.Conn, state http.ConnState) {
	if state != http.StateActive && state != http.StateIdle {
		return
	}
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if c, ok := conn.(*gateConn); ok {
		c.admit()
	}
}
