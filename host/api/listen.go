package api

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// limitedListener accepts while there are fewer than so many connections, and keeps those
// of callers without the token from taking all of them.
type limitedListener struct {
	net.Listener
	slots     chan struct{} // one for each connection
	strangers int           // how many may be without the token
	once      sync.Once
	closed    chan struct{}

	mu    sync.Mutex // protects what follows
	conns map[*limitedConn]bool
	// idle are the connections without the token on which no wait or stream goes on, that
	// which has done nothing for longest first; serving is how many have one.
	idle    list.List
	serving int
}

func limitConns(l net.Listener, most int) *limitedListener {
	return &limitedListener{
		Listener: l, slots: make(chan struct{}, most), strangers: most - most/4,
		closed: make(chan struct{}), conns: map[*limitedConn]bool{},
	}
}

// Accept waits for a slot first: what is not accepted costs this process nothing.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	c := &limitedConn{Conn: conn, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	for l.idle.Len() > 0 && l.idle.Len()+l.serving >= l.strangers {
		_ = l.idle.Remove(l.idle.Front()).(*limitedConn).evictLocked() // the server closes it again, and counts it
	}
	c.place = l.idle.PushBack(c)
	return c, nil
}

// Close stops accepting, also when all slots are taken.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// closeUnused closes connections over which nothing has come yet. A shutdown
// would wait seconds for their first request.
func (l *limitedListener) closeUnused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if !c.used.Load() {
			_ = c.Conn.Close() // the server closes it again, and counts it
		}
	}
}

// limitedConn holds a slot until it is closed.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	used     atomic.Bool
	once     sync.Once

	place   *list.Element // in the listener's idle; nil = it is not in it; protected by listener.mu, as what follows
	trusted bool          // the token has come over it
	waits   int           // waits and streams that go on
	serving bool          // it counts in the listener's serving
}

// connKey is that of the connection in the context of a request.
type connKey struct{}

// withConn puts the connection into the context of its requests.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	return context.WithValue(ctx, connKey{}, conn)
}

func (c *limitedConn) evictLocked() error {
	c.place = nil
	return c.Conn.Close()
}

// trust says that the token has come: the connection is not closed for others.
func (c *limitedConn) trust() {
	if c == nil {
		return
	}
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.trusted {
		c.trusted = true
		c.forgetLocked()
	}
}

// touch says that a request without the token has come.
func (c *limitedConn) touch() {
	if c == nil {
		return
	}
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.place != nil {
		c.listener.idle.MoveToBack(c.place)
	}
}

// occupy says that a wait or a stream begins; their number is bounded elsewhere.
func (c *limitedConn) occupy() {
	if c == nil {
		return
	}
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.place != nil {
		l.idle.Remove(c.place)
		c.place, c.serving = nil, true
		l.serving++
	}
	c.waits++
}

// leave says that it has ended.
func (c *limitedConn) leave() {
	if c == nil {
		return
	}
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.waits--; c.waits == 0 && c.serving {
		c.forgetLocked()
		c.place = l.idle.PushBack(c)
	}
}

// forgetLocked takes the connection out of those without the token.
func (c *limitedConn) forgetLocked() {
	switch {
	case c.place != nil:
		c.listener.idle.Remove(c.place)
		c.place = nil
	case c.serving:
		c.serving = false
		c.listener.serving--
	}
}

func (c *limitedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.used.Load() {
		c.used.Store(true)
	}
	return n, err
}

func (c *limitedConn) Close() error {
	c.once.Do(func() {
		c.listener.mu.Lock()
		delete(c.listener.conns, c)
		c.forgetLocked()
		c.listener.mu.Unlock()
		<-c.listener.slots
	})
	return c.Conn.Close()
}
