package postgres

import (
	"sync"
	"sync/atomic"
)

// roundTrips counts how often a connection was answered.
type roundTrips struct {
	asked atomic.Bool // the client has sent something since
	n     atomic.Int64
}

// pass notes that bytes go in a direction.
func (r *roundTrips) pass(way Direction) {
	if way == ToServer {
		r.asked.Store(true)
	} else if r.asked.Swap(false) {
		r.n.Add(1)
	}
}

// tripCounter has the round trips of all connections that there were.
type tripCounter struct {
	mu    sync.Mutex // protects conns
	conns []*roundTrips
}

func (c *tripCounter) add() *roundTrips {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &roundTrips{}
	c.conns = append(c.conns, r)
	return r
}

func (c *tripCounter) counts() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := make([]int64, len(c.conns))
	for i, r := range c.conns {
		counts[i] = r.n.Load()
	}
	return counts
}

// RoundTrips returns how many round trips were made while f ran, on the connection that made most: the heartbeats of
// other connections don't count. A message whose answer comes in parts while it is being sent may count several times.
func (p *Proxy) RoundTrips(f func()) (most int64) {
	before := p.trips.counts()
	f()
	for i, n := range p.trips.counts() {
		if i < len(before) {
			n -= before[i]
		}
		most = max(most, n)
	}
	return most
}
