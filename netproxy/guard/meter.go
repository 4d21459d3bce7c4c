package guard

import (
	"net"
	"sync/atomic"
)

// errFlood closes a connection whose server sends more than its responses may
// have.
type errFlood struct{}

func (errFlood) Error() string { return "the server sends more than its responses may have" }

// meteredConn is a connection that may receive only so much for each request.
type meteredConn struct {
	net.Conn
	perRequest int64
	left       atomic.Int64
}

// Read fails once more was received than was granted.
func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.left.Add(int64(-n)) < -c.perRequest { // one extra grant covers the handshake
		_ = c.Conn.Close()
		return 0, errFlood{}
	}
	return n, err
}

// grant lets a connection receive the share of one more request. Unused shares
// accumulate only up to a limit.
func grant(conn net.Conn) {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	c, ok := conn.(*meteredConn)
	if !ok {
		return
	}
	const most = 256 // the most requests in flight on one connection
	if c.left.Add(c.perRequest) > most*c.perRequest {
		c.left.Store(most * c.perRequest)
	}
}
