package cluster

import (
	"context"
	"time"
)

// retirePoll is how often a host that retires looks whether it reaches the next leader.
const retirePoll = 10 * time.Millisecond

// Retire makes this host lead no more, which is the first step of its end, and waits until another one leads and is reached.
// Requests are passed on to that from then on, so no client finds the host gone that could have been answered. It
// reports false if there is no such host, or ctx ends before.
func (m *Member) Retire(ctx context.Context) (succeeded bool) {
	m.mu.Lock()
	m.retired = true
	m.mu.Unlock()
	m.refreshHosts(ctx) // another host may have come since the last heartbeat, and none is to count on this one
	m.wake()
	tick := time.NewTicker(retirePoll)
	defer tick.Stop()
	for {
		r, changed := m.front.now()
		if r != nil && r.peer != nil && r.peer.reached.Load() {
			return true
		}
		if !m.HasSuccessor() {
			return false
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}
