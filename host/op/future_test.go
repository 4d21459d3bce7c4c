package op_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost/host/op"
)

func TestFuture(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f op.Future[int]
		if _, ok, _ := f.Peek(); ok {
			t.Error("an empty future has a result")
		}
		a, b := background(t.Context(), f.Get()), background(t.Context(), f.Get())
		mustBlock(t, a)
		mustBlock(t, b)
		if !f.Set(3, errTest) || f.Set(4, nil) {
			t.Error("set must report whether it was the first")
		}
		for _, out := range []<-chan result[int]{a, b, background(t.Context(), f.Get())} {
			if r := take(t, out); r.value != 3 || !errors.Is(r.err, errTest) {
				t.Errorf("got %v", r)
			}
		}
	})
}

func TestFutureSetWhileRegistering(t *testing.T) {
	t.Parallel()
	var f op.Future[int]
	setter := op.New(
		func() (int, bool, error) { return 0, false, nil },
		func(*op.Waiter[int]) { f.Set(3, nil) })
	if v := mustPerform(t, op.Choice(setter, f.Get())); v != 3 {
		t.Errorf("got %d", v)
	}
}

func TestSignal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var s op.Signal
		out := background(t.Context(), s.Wait())
		mustBlock(t, out)
		if s.Fired() || !s.Fire() || s.Fire() || !s.Fired() {
			t.Error("a signal fires once")
		}
		take(t, out)
		mustPerform(t, s.Wait())
	})
}

// TestHammerFuture races one Set of many against waiters that may give up.
func TestHammerFuture(t *testing.T) {
	t.Parallel()
	for range 300 {
		var f op.Future[int64]
		var wg sync.WaitGroup
		var winner atomic.Int64
		for i := range int64(3) {
			wg.Go(func() {
				if f.Set(i+1, nil) {
					winner.Store(i + 1)
				}
			})
			wg.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if i == 0 {
					go cancel()
				}
				v, err := op.Perform(ctx, op.Choice(f.Get(), f.Get()))
				if again, _, _ := f.Peek(); err == nil && v != again {
					t.Errorf("got %d, then %d", v, again)
				}
			})
		}
		wg.Wait()
		if v, _, _ := f.Peek(); v != winner.Load() {
			t.Errorf("future has %d, set reported %d", v, winner.Load())
		}
	}
}
