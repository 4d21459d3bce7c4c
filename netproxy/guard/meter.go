package guard

import (
	"net"
	"sync/atomic"
)

// errFlood is why a connection is closed whose server sends more than its
// responses may have.
type errFlood struct{}

func (errFlood) Error() string { return "the server sends more than its responses may have" }

// meteredConn is a connection that receives only so much for each request.
type meteredConn struct {
	net.Conn
	perRequest int64
	left       atomic.Int64
}

// Read fails when more was received than was granted.
func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.left.Add(int64(-n)) < -c.perRequest { // one grant in advance is for the handshake
		_ = c.Conn.Close()
		return 0, errFlood{}
	}
	return n, err
}

// grant lets a connection receive what belongs to one more request. What earlier
// ones have not used up is not kept for long.
func grant(conn net.Conn) {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	c, ok := conn.(*meteredConn)
	if !ok {
		return
	}
	const most = 256 // requests that may be under way on one connection
	if c.left.Add(c.perRequest) > most*c.perRequest {
		c.left.Store(most * c.perRequest)
	}
}
