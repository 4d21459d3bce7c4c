package api

import (
	"math/rand/v2"
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

// TestConnsHammer does with connections whatever servers do, from many goroutines: in the end
// nothing is counted, and there never are more strangers than may be.
func TestConnsHammer(t *testing.T) {
	t.Parallel()
	l := limitConns(pipes{}, 16)
	var group sync.WaitGroup
	for seed := range uint64(12) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 2))
			for range 300 {
				accepted, err := l.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				c := accepted.(*limitedConn)
				serving := 0
				for range random.IntN(4) {
					switch random.IntN(3) {
					case 0:
						c.touch()
					case 1:
						c.trust()
					case 2:
						c.occupy()
						c.touch()
						c.leave()
						c.occupy()
						serving++
					}
				}
				l.mu.Lock()
				if idle := l.idle.Len(); idle > l.strangers {
					t.Errorf("%d idle strangers, of %d that may be", idle, l.strangers)
				}
				l.mu.Unlock()
				_ = c.Close()
				for range serving { // after it was closed
					c.leave()
				}
			}
		})
	}
	group.Wait()
	if l.idle.Len() != 0 || l.serving != 0 || len(l.conns) != 0 || len(l.slots) != 0 {
		t.Errorf("%d idle, %d serving, %d connections, %d slots are still counted", l.idle.Len(), l.serving, len(l.conns), len(l.slots))
	}
}
