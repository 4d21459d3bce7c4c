package op

import (
	"sync"
	"testing"
)

func TestCommitBoth(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		self, peer state
		want       meeting
	}{
		{"both waiting", waiting, waiting, met},
		{"self committed", committed, waiting, selfGone},
		{"self cancelled", cancelled, waiting, selfGone},
		{"peer committed", waiting, committed, peerGone},
		{"peer cancelled", waiting, cancelled, peerGone},
		{"both gone", committed, cancelled, selfGone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			self, peer := newSession(), newSession()
			self.state, peer.state = tt.self, tt.peer
			if got := commitBoth(self, 3, peer, 5); got != tt.want {
				t.Fatalf("got %d, want %d", got, tt.want)
			}
			if tt.want == met {
				if self.state != committed || self.winner != 3 || peer.state != committed || peer.winner != 5 {
					t.Errorf("self %d %d, peer %d %d", self.state, self.winner, peer.state, peer.winner)
				}
			} else if self.state != tt.self || peer.state != tt.peer {
				t.Errorf("self is now %d, peer %d", self.state, peer.state)
			}
		})
	}
}

// TestHammerCommitBoth locks two sessions from both sides for as long as it takes
// to show a deadlock, were there no order.
func TestHammerCommitBoth(t *testing.T) {
	t.Parallel()
	a, b := newSession(), newSession()
	b.state = committed // so that nothing changes
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 50_000 {
				if i%2 == 0 {
					commitBoth(a, 0, b, 0)
				} else {
					commitBoth(b, 0, a, 0)
				}
			}
		})
	}
	wg.Wait()
}
