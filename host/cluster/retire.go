package cluster

import (
	"context"
	"time"
)

// retirePoll is how often Retire looks whether the next leader is reached.
const retirePoll = 10 * time.Millisecond

// Retire is the first step of stopping: this host leads no more, and Retire waits until another one leads and is reached, to
// which requests are forwarded from then on. So clients of this host are answered until it is gone. false = there is no
// such host, or ctx has ended.
func (m *Member) Retire(ctx context.Context) (succeeded bool) {
	m.mu.Lock()
	m.retired = true
	m.mu.Unlock()
	m.refreshHosts(ctx) // other hosts may have joined since the last heartbeat, and must no longer count on this one
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
