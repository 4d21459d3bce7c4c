package pgqueue

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestInboxCursor: the whole inbox is looked at once a second, or when a look takes long, in a twentieth of the time.
func TestInboxCursor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c inboxCursor
		c.saw(50_000)
		look := func(want int64, takes time.Duration) {
			t.Helper()
			from, looked := c.from()
			if from != want {
				t.Errorf("looked from %d, want %d", from, want)
			}
			time.Sleep(takes)
			looked()
		}
		look(0, time.Millisecond)
		time.Sleep(inboxWhole - time.Millisecond)
		look(40_000, time.Millisecond)
		look(0, 3*time.Second)
		time.Sleep(inboxShare*3*time.Second - time.Millisecond)
		look(40_000, time.Millisecond)
		look(0, time.Millisecond)
	})
}
