package wasm

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// countedStopper returns a stopper and tells how often it halted its guest.
func countedStopper(dog *watchdog) (*stopper, *atomic.Int64) {
	halts := &atomic.Int64{}
	return newStopper(dog, func() { halts.Add(1) }), halts
}

func TestStopperDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dog := newWatchdog()
		defer dog.close()
		s, halts := countedStopper(dog)
		defer s.close()
		run := func(timeout, takes time.Duration) stopReason {
			if why := s.begin(t.Context(), time.Now().Add(timeout)); why != notStopped {
				return why
			}
			time.Sleep(takes)
			synctest.Wait()
			return s.end(false)
		}
		for n := range 50 {
			if why := run(time.Second, 300*time.Millisecond); why != notStopped {
				t.Fatalf("run %d was stopped: %v", n, why)
			}
			time.Sleep(time.Minute) // the watchdog falls asleep
		}
		if why := run(100*time.Millisecond, 99*time.Millisecond); why != notStopped {
			t.Fatalf("a shorter run was stopped: %v", why)
		}
		if why := run(-time.Millisecond, 0); why != byDeadline || halts.Load() != 0 {
			t.Errorf("a deadline in the past: %v, %d halts", why, halts.Load())
		}
		if why := run(100*time.Millisecond, 100*time.Millisecond+beat); why != byDeadline || halts.Load() != 1 {
			t.Errorf("late by a beat: %v, %d halts", why, halts.Load())
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
		dog := newWatchdog()
		defer dog.close()
		s, halts := countedStopper(dog)
		defer s.close()
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{first, first, second} {
			if why := s.begin(ctx, time.Time{}); why != notStopped {
				t.Fatal(why)
			}
			if ctx == first {
				s.end(false)
			}
		}
		cancelFirst() // no longer ours
		time.Sleep(2 * beat)
		if why := s.end(false); why != notStopped {
			t.Fatalf("stopped by the context of an earlier run: %v", why)
		}
		if why := s.begin(first, time.Time{}); why != byContext || halts.Load() != 0 {
			t.Errorf("with a context that has ended: %v, %d halts", why, halts.Load())
		}
		if why := s.begin(second, time.Time{}); why != notStopped {
			t.Fatal(why)
		}
		if why := s.begin(second, time.Time{}); why != alreadyBusy {
			t.Errorf("a run within a run: %v", why)
		}
		cancelSecond()
		time.Sleep(2 * beat)
		if why := s.end(false); why != byContext || halts.Load() != 1 {
			t.Errorf("%v, %d halts", why, halts.Load())
		}
	})
}

// TestStopperBroke: a guest that breaks when its time is over was stopped, even
// if the watchdog has not looked yet.
func TestStopperBroke(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dog := newWatchdog()
		defer dog.close()
		for _, c := range []struct {
			after time.Duration
			broke bool
			want  stopReason
		}{
			{2 * time.Millisecond, true, byDeadline}, {2 * time.Millisecond, false, notStopped}, {0, true, notStopped},
		} {
			s, _ := countedStopper(dog)
			s.begin(t.Context(), time.Now().Add(time.Millisecond))
			time.Sleep(c.after)
			if why := s.end(c.broke); why != c.want {
				t.Errorf("after %v, broke: %t: %v instead of %v", c.after, c.broke, why, c.want)
			}
			s.close()
		}
	})
}

// TestWatchdogSleeps: without runs it costs nothing, and it wakes for the next.
func TestWatchdogSleeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dog := newWatchdog()
		defer dog.close()
		if !dog.asleep.Load() {
			t.Error("it is awake before the first run")
		}
		s, _ := countedStopper(dog)
		defer s.close()
		for range 2 {
			s.begin(t.Context(), time.Time{})
			if dog.asleep.Load() {
				t.Error("it sleeps while a guest runs")
			}
			time.Sleep(3 * maxIdle * beat)
			if dog.asleep.Load() {
				t.Error("it fell asleep while a guest runs")
			}
			s.end(false)
			time.Sleep((maxIdle + 2) * beat)
			if !dog.asleep.Load() {
				t.Error("it is awake though nothing runs")
			}
		}
	})
}

// TestStopperLockOrder: a run that wakes the watchdog, and finds it at work, holds
// no lock that the watchdog needs: else both wait forever, and with them
// all guests.
func TestStopperLockOrder(t *testing.T) {
	t.Parallel()
	dog := newWatchdog()
	defer dog.close()
	s, _ := countedStopper(dog)
	dog.mu.Lock() // as in a look
	var wg sync.WaitGroup
	wg.Go(func() { s.begin(t.Context(), time.Time{}) })
	for dog.running.Load() == 0 {
		runtime.Gosched()
	}
	// The run is counted, and goes on to wake the watchdog.
	if s.mu.TryLock() {
		s.mu.Unlock()
	} else {
		t.Error("it waits for the watchdog with a lock that the watchdog needs")
	}
	dog.mu.Unlock()
	wg.Wait()
	s.end(false)
	s.close()
}

// TestStopperHammer ends contexts and deadlines at all moments of runs.
func TestStopperHammer(t *testing.T) {
	t.Parallel()
	dog := newWatchdog()
	defer dog.close()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for n := range 300 {
				s, halts := countedStopper(dog)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Duration(n%7)*time.Millisecond, cancel)
				for range 3 {
					deadline := time.Now().Add(time.Duration((n*7+g)%9) * time.Millisecond)
					if s.begin(ctx, deadline) == notStopped {
						dog.look()
						s.end(false)
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
	if n := dog.running.Load(); n != 0 || len(dog.stoppers) != 0 {
		t.Errorf("%d runs and %d stoppers are left", n, len(dog.stoppers))
	}
}
