package wasm

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// watchedStopper returns a stopper and tells when it halted its guest.
func watchedStopper() (*stopper, *atomic.Int64) {
	halts := &atomic.Int64{}
	return newStopper(func() { halts.Add(1) }), halts
}

func TestStopperDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, halts := watchedStopper()
		defer s.close()
		run := func(timeout, takes time.Duration) stopReason {
			if why := s.begin(t.Context(), time.Now().Add(timeout)); why != notStopped {
				return why
			}
			time.Sleep(takes)
			synctest.Wait()
			return s.end()
		}
		// The timer of the first run fires during later ones, which have more time.
		for n := range 50 {
			if why := run(time.Second, 300*time.Millisecond); why != notStopped {
				t.Fatalf("run %d was stopped: %v", n, why)
			}
		}
		if why := run(100*time.Millisecond, 99*time.Millisecond); why != notStopped {
			t.Fatalf("a shorter run was stopped: %v", why)
		}
		if why := run(-time.Millisecond, 0); why != byDeadline || halts.Load() != 0 {
			t.Errorf("a deadline in the past: %v, %d halts", why, halts.Load())
		}
		if why := run(100*time.Millisecond, 101*time.Millisecond); why != byDeadline || halts.Load() != 1 {
			t.Errorf("late by a millisecond: %v, %d halts", why, halts.Load())
		}
		if why := run(time.Second, 0); why != byDeadline || halts.Load() != 1 {
			t.Errorf("a run after the stop: %v, %d halts", why, halts.Load())
		}
		select {
		case <-s.done:
		default:
			t.Error("nobody woke the sleepers")
		}
	})
}

func TestStopperContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, halts := watchedStopper()
		defer s.close()
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		for range 3 {
			if why := s.begin(first, time.Time{}); why != notStopped {
				t.Fatal(why)
			}
			s.end()
		}
		if why := s.begin(second, time.Time{}); why != notStopped {
			t.Fatal(why)
		}
		cancelFirst() // no longer ours
		synctest.Wait()
		if why := s.end(); why != notStopped {
			t.Fatalf("stopped by the context of an earlier run: %v", why)
		}
		if why := s.begin(first, time.Time{}); why != byContext || halts.Load() != 0 {
			t.Errorf("with a context that has ended: %v, %d halts", why, halts.Load())
		}
		if why := s.begin(second, time.Time{}); why != notStopped {
			t.Fatal(why)
		}
		cancelSecond()
		synctest.Wait()
		if why := s.end(); why != byContext || halts.Load() != 1 {
			t.Errorf("%v, %d halts", why, halts.Load())
		}
	})
}

// TestStopperHammer ends contexts and deadlines at all moments of runs.
func TestStopperHammer(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for n := range 500 {
				s, halts := watchedStopper()
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				for range 3 {
					deadline := time.Now().Add(time.Duration((n*7+g)%50) * time.Microsecond)
					if s.begin(ctx, deadline) == notStopped {
						s.end()
					}
				}
				s.close()
				if h := halts.Load(); h > 1 || (h == 1) != (s.reason != notStopped) {
					t.Errorf("%d halts, stopped %v", h, s.reason)
				}
				cancel()
			}
		})
	}
	wg.Wait()
}
