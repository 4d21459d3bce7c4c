package op_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jobhost/jobhost/host/op"
)

// shelf is a primitive as the package comment describes it: things are put on it
// and taken off, and it notes who waits.
type shelf struct {
	mu      sync.Mutex // protects the fields below
	things  []int
	waiters op.WaitList[int]
}

func (s *shelf) put(v int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waiters.Complete(v, nil) {
		s.things = append(s.things, v)
	}
}

func (s *shelf) take() op.Op[int] {
	return op.New(
		func() (v int, ok bool, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.things) == 0 {
				return 0, false, nil
			}
			v, s.things = s.things[0], s.things[1:]
			return v, true, nil
		},
		func(w *op.Waiter[int]) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.things) > 0 {
				if w.Complete(s.things[0], nil) {
					s.things = s.things[1:]
				}
				return
			}
			s.waiters.Push(w)
			w.OnAbort(func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.waiters.Remove(w)
			})
		})
}

func (s *shelf) state() (things, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.things), s.waiters.Len()
}

func TestPrimitive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var s shelf
		ctx, cancel := context.WithCancel(t.Context())
		gone := background(ctx, s.take())
		mustBlock(t, gone)
		out := background(t.Context(), op.Choice(s.take(), s.take(), op.Never[int]()))
		mustBlock(t, out)
		cancel()
		if r := take(t, gone); !errors.Is(r.err, context.Canceled) {
			t.Errorf("got %v", r)
		}
		s.put(1) // for one of the two arms that are left; the other isn't served
		s.put(2)
		if r := take(t, out); r.value != 1 {
			t.Errorf("got %v", r)
		}
		if things, waiting := s.state(); things != 1 || waiting != 0 {
			t.Errorf("%d things, %d waiting", things, waiting)
		}
	})
}

func TestWaiterCompletesOnce(t *testing.T) {
	t.Parallel()
	var kept *op.Waiter[int]
	o := op.New(
		func() (int, bool, error) { return 0, false, nil },
		func(w *op.Waiter[int]) {
			kept = w
			w.OnAbort(func() { t.Error("aborted") })
			if !w.Complete(1, errTest) || w.Complete(2, nil) {
				t.Error("the first completion counts")
			}
		})
	if v, err := op.Perform(t.Context(), o); v != 1 || !errors.Is(err, errTest) {
		t.Errorf("got %d, %v", v, err)
	}
	if kept.Complete(3, nil) {
		t.Error("completed after the end")
	}
}

func TestWaitList(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var list op.WaitList[int]
		var waiters []*op.Waiter[int]
		wait := op.New(
			func() (int, bool, error) { return 0, false, nil },
			func(w *op.Waiter[int]) { list.Push(w); waiters = append(waiters, w) })
		var outs []<-chan result[int]
		for range 5 {
			out := background(t.Context(), wait)
			mustBlock(t, out)
			outs = append(outs, out)
		}
		list.Remove(waiters[2]) // the middle
		list.Remove(waiters[2]) // again: nothing happens
		list.Remove(waiters[4]) // the last
		waiters[0].Complete(10, nil)
		if !list.Complete(11, nil) { // skips the decided one
			t.Error("nobody completed")
		}
		if n := list.CompleteAll(12, nil); n != 1 || list.Len() != 0 {
			t.Errorf("completed %d, %d left", n, list.Len())
		}
		waiters[2].Complete(13, nil)
		waiters[4].Complete(14, nil)
		for i, want := range []int{10, 11, 13, 12, 14} {
			if r := take(t, outs[i]); r.value != want {
				t.Errorf("waiter %d got %v, want %d", i, r.value, want)
			}
		}
	})
}

// TestHammerPrimitive checks with real concurrency that nothing is lost between
// try and block, or given to an arm that has lost.
func TestHammerPrimitive(t *testing.T) {
	t.Parallel()
	var a, b shelf
	const takers, each = 4, 2000
	var wg sync.WaitGroup
	var mu sync.Mutex // protects seen
	seen := map[int]int{}
	for range takers {
		wg.Go(func() {
			for range each {
				v, err := op.PerformRaw(op.Choice(a.take(), b.take()))
				if err != nil {
					t.Errorf("perform: %v", err)
				}
				mu.Lock()
				seen[v]++
				mu.Unlock()
			}
		})
	}
	for i := range takers * each {
		if i%3 == 0 {
			a.put(i)
		} else {
			b.put(i)
		}
	}
	wg.Wait()
	for i := range takers * each {
		if seen[i] != 1 {
			t.Errorf("%d was taken %d times", i, seen[i])
		}
	}
}
