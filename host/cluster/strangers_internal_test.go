package cluster

import (
	"net"
	"sync"
	"testing"
)

// pipes is a listener to which a connection comes whenever one is accepted.
type pipes struct{ net.Listener }

func (pipes) Accept() (net.Conn, error) {
	conn, _ := net.Pipe()
	return conn, nil
}

// TestGateHammer: connections come, show a key and end on many goroutines. There are never too many strangers, and none in the end.
func TestGateHammer(t *testing.T) {
	t.Parallel()
	g := &gate{Listener: pipes{}}
	var group sync.WaitGroup
	for i := range 2 * maxStrangers {
		group.Go(func() {
			for n := range 50 {
				conn, err := g.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				if (i+n)%3 == 0 {
					conn.(*gateConn).admit()
				}
				g.mu.Lock()
				if there := g.strangers.Len(); there > maxStrangers {
					t.Errorf("%d strangers", there)
				}
				g.mu.Unlock()
				_ = conn.Close()
			}
		})
	}
	group.Wait()
	if left := g.strangers.Len(); left != 0 {
		t.Errorf("%d strangers are left", left)
	}
}
