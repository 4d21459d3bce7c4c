package api

import (
	"net"
	"sync"
	"sync/atomic"
)

// limitedListener accepts while there are fewer than so many connections.
type limitedListener struct {
	net.Listener
	slots  chan struct{} // one for each connection
	once   sync.Once
	closed chan struct{}

	mu    sync.Mutex // protects conns
	conns map[*limitedConn]bool
}

func limitConns(l net.Listener, most int) *limitedListener {
	return &limitedListener{
		Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{}), conns: map[*limitedConn]bool{},
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
	l.conns[c] = true
	l.mu.Unlock()
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
		c.listener.mu.Unlock()
		<-c.listener.slots
	})
	return c.Conn.Close()
}
