package state_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/state"
)

// numbers is what an observer got.
type numbers struct {
	hits, misses, replays, writes, failures int
	delivered                               []time.Duration
	wrote                                   []time.Duration
	dropped                                 []int
	slow                                    int
	drift                                   []int64
}

func (n *numbers) observer() state.Observer {
	return state.Observer{
		Opened: func(hit bool) {
			if hit {
				n.hits++
			} else {
				n.misses++
			}
		},
		Replayed:  func(time.Duration) { n.replays++ },
		Delivered: func(took time.Duration) { n.delivered = append(n.delivered, took) },
		Wrote: func(took time.Duration, err error) {
			n.writes++
			n.wrote = append(n.wrote, took)
			if err != nil {
				n.failures++
			}
		},
		Dropped: func(events int) { n.dropped = append(n.dropped, events) },
		Slow:    func() { n.slow++ },
		Drift:   func(versions int64) { n.drift = append(n.drift, versions) },
	}
}

func TestObserverOfWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n numbers
		f := observed(t, 1, n.observer())
		broken := errors.New("broken")
		f.store.Before = func(s state.State) error {
			<-time.After(time.Second)
			if s.Status < 0 {
				return broken
			}
			return nil
		}
		f.set(of(0, "a", 1))
		_, err := f.Set(t.Context(), of(0, "a", -1))
		wantErr(t, "set", err, broken)
		if _, err := f.Set(t.Context(), of(0, "no tag", 1)); err == nil {
			t.Error("it was set")
		}
		if n.writes != 3 || n.failures != 2 || n.wrote[0] != time.Second {
			t.Errorf("observed: %+v", n)
		}
	})
}

// TestObserverOfDelivery tells how long changes take that are watched.
func TestObserverOfDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n numbers
		f := observed(t, 1, n.observer())
		f.set(of(0, "a", 1)) // not watched
		sub := f.subscribe(state.WithTag("b"))
		f.subscribe(state.WithTag("b"))
		f.set(of(0, "a", 2)) // not watched
		s := of(0, "b", 3)
		s.Version, s.Timestamp = 1, time.Now().Add(-time.Second)
		f.Put(s)
		f.Put(s) // known
		if len(n.delivered) != 1 || n.delivered[0] != time.Second || n.replays != 2 {
			t.Errorf("observed: %+v", n)
		}
		wantTold(t, sub, "sentinel", "0/b v1 =3")
	})
}

// TestObserverOfDrops counts what readers leave unread when they go.
func TestObserverOfDrops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n numbers
		f := observed(t, 1, n.observer())
		f.set(of(0, "a", 1))
		watch := func() (*state.Subscription, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			sub, err := f.Subscribe(ctx, state.Query{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return sub, cancel
		}
		cancelled, cancel := watch()
		<-cancelled.Events()
		f.set(of(0, "a", 2))
		cancel() // leaves the sentinel and a change
		synctest.Wait()

		closed, cancel := watch()
		defer cancel()
		closed.Close() // leaves the replay and the sentinel
		closed.Close()

		m := f.manage(0)
		if _, err := m.Subscribe(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.set(of(0, "a", 3))
		_ = m.Close() // leaves the replay, the sentinel and a change

		read, cancel := watch()
		told(read)
		cancel() // leaves nothing
		synctest.Wait()

		watch()
		_ = f.Close() // can still be read
		if len(n.dropped) != 3 || n.dropped[0] != 2 || n.dropped[1] != 2 || n.dropped[2] != 3 {
			t.Errorf("dropped: %v", n.dropped)
		}
	})
}

func TestObserverOfSlowReaders(t *testing.T) {
	t.Parallel()
	var n numbers
	f := observed(t, 1, n.observer())
	f.subscribe()
	f.subscribe()
	for range state.Buffer + 5 {
		f.set(of(0, "a", 1))
	}
	if n.slow != 2 || len(n.dropped) > 0 {
		t.Errorf("observed: %+v", n)
	}
}

// TestObserverOfDrift counts the versions that a board has never seen, once it is open.
func TestObserverOfDrift(t *testing.T) {
	t.Parallel()
	var n numbers
	f := observed(t, 2, n.observer())
	f.set(of(0, "a", 1), of(0, "a", 2), of(0, "a", 3))
	open(t, f.store, 0, n.observer()) // finds version 3
	if len(n.drift) != 0 {
		t.Fatalf("drift: %v", n.drift)
	}
	s := of(0, "a", 4)
	s.Version = 7 // 4, 5 and 6 were missed
	f.Put(s, s)
	s.Version = 6 // comes late
	f.Put(s)
	s.TaskID, s.Version = 1, 2 // version 1 was missed
	f.Put(s)
	if len(n.drift) != 2 || n.drift[0] != 3 || n.drift[1] != 1 {
		t.Errorf("drift: %v", n.drift)
	}
}
