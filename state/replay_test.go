package state_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost/state"
)

// replaying opens a board with a state of two tasks, and calls during while the
// states that a subscription begins with are put in order.
func replaying(t *testing.T, during func(fixture)) (fixture, *state.Subscription) {
	t.Helper()
	var f fixture
	f = observed(t, 2, state.Observer{Replayed: func(time.Duration) { during(f) }})
	f.set(of(0, "a", 1), of(1, "a", 1))
	return f, f.subscribe()
}

// TestChangesDuringReplay wants no writer to wait for a replay, and what changes
// during it to come after it.
func TestChangesDuringReplay(t *testing.T) {
	t.Parallel()
	f, sub := replaying(t, func(f fixture) { f.set(of(0, "a", 2), of(1, "b", 3)) })
	f.set(of(1, "b", 4))
	wantTold(t, sub, "was 0/a v1 =1", "was 1/a v1 =1", "sentinel", "0/a v2 =2", "1/b v1 =3", "1/b v2 =4")
}

func TestTooManyChangesDuringReplay(t *testing.T) {
	t.Parallel()
	_, sub := replaying(t, func(f fixture) {
		for range state.Buffer + 1 {
			f.set(of(0, "a", 2))
		}
	})
	wantErr(t, "end", sub.Err(), state.ErrSlow)
	events, _ := told(sub)
	if n := len(events); n != 2+1+state.Buffer+1 || events[n-1] != "end" {
		t.Errorf("%d events were told, the last is %s", n, events[n-1])
	}
}

func TestEndDuringReplay(t *testing.T) {
	t.Parallel()
	_, sub := replaying(t, func(f fixture) { _ = f.Close() })
	wantErr(t, "end", sub.Err(), state.ErrClosed)
	wantTold(t, sub, "was 0/a v1 =1", "was 1/a v1 =1", "sentinel", "end")
}

// TestSlowReaderOfLargeChanges bounds what is unread by its bytes too.
func TestSlowReaderOfLargeChanges(t *testing.T) {
	t.Parallel()
	f := setup(t, 1)
	slow, swift := f.subscribe(), f.subscribe()
	large := of(0, "a", 1)
	large.Payload = []byte(`{"text":"` + strings.Repeat("x", 64<<10-20) + `"}`)
	wantTold(t, swift, "sentinel")
	fit := state.BufferBytes / (64 << 10)
	for range 3 * fit {
		f.set(large)
		if events, _ := told(swift); len(events) != 1 {
			t.Fatalf("the swift reader was told %v", events)
		}
	}
	wantErr(t, "end of the slow one", slow.Err(), state.ErrSlow)
	events, _ := told(slow)
	if n := len(events); n < fit || n > fit+3 {
		t.Errorf("%d events were unread, want about %d", n, fit)
	}
	if swift.Err() != nil {
		t.Errorf("the swift one has ended: %v", swift.Err())
	}
}
