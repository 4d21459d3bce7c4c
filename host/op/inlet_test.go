package op_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/jobhost/jobhost/host/op"
)

func TestInlet(t *testing.T) {
	t.Run("buffered values, then closed", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ch := make(chan int, 2)
			in := op.NewInlet(ch)
			ch <- 1
			ch <- 2
			close(ch)
			if a, b := mustPerform(t, in.Recv()), mustPerform(t, in.Recv()); a != 1 || b != 2 {
				t.Errorf("got %d, %d", a, b)
			}
			if _, err := op.Perform(t.Context(), in.Recv()); !errors.Is(err, op.ErrClosed) {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("waits", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ch := make(chan int)
			in := op.NewInlet(ch)
			out := background(t.Context(), in.Recv())
			mustBlock(t, out)
			ch <- 4
			if r := take(t, out); r.value != 4 {
				t.Errorf("got %v", r)
			}
			out = background(t.Context(), in.Recv())
			mustBlock(t, out)
			close(ch)
			if r := take(t, out); !errors.Is(r.err, op.ErrClosed) {
				t.Errorf("got %v", r)
			}
		})
	})
	t.Run("a value that comes too late is kept for the next", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ch := make(chan int)
			in := op.NewInlet(ch)
			var f op.Future[int]
			gate := op.New(
				func() (int, bool, error) { return 0, false, nil },
				func(w *op.Waiter[int]) {
					// The choice is decided, and only then a value comes for the other arm.
					f.Set(9, nil)
					w.Complete(9, nil)
					ch <- 1
				})
			if v := mustPerform(t, op.Choice(in.Recv(), gate)); v != 9 {
				t.Errorf("got %d", v)
			}
			if v, ok, _ := op.TryPerform(in.Recv()); !ok || v != 1 {
				t.Errorf("got %d, %t", v, ok)
			}
		})
	})
	t.Run("or for another one who waits", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ch := make(chan int)
			in := op.NewInlet(ch)
			var other <-chan result[int]
			gate := op.New(
				func() (int, bool, error) { return 0, false, nil },
				func(w *op.Waiter[int]) {
					w.Complete(9, nil)
					synctest.Wait() // for the goroutine of the first to stand before ch
					other = background(t.Context(), in.Recv())
					synctest.Wait()
					ch <- 1 // goes to the goroutine that came first, whose arm has lost
				})
			mustPerform(t, op.Choice(in.Recv(), gate))
			if r := take(t, other); r.value != 1 {
				t.Errorf("got %v", r)
			}
		})
	})
	t.Run("also for one who has just looked in vain", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ch := make(chan int)
			in := op.NewInlet(ch)
			never := func() (int, bool, error) { return 0, false, nil }
			late := op.New(never, func(w *op.Waiter[int]) { w.Complete(9, nil); ch <- 1 })
			first := op.New(never, func(*op.Waiter[int]) { mustPerform(t, op.Choice(in.Recv(), late)) })
			if v := mustPerform(t, op.Choice(first, in.Recv())); v != 1 {
				t.Errorf("got %d", v)
			}
		})
	})
	t.Run("leaves nothing behind", func(t *testing.T) {
		bubble(t, func(t *testing.T) { // which fails if a goroutine is left
			in := op.NewInlet(make(chan int))
			ctx, cancel := context.WithCancel(t.Context())
			out := background(ctx, op.Choice(in.Recv(), in.Recv()))
			mustBlock(t, out)
			cancel()
			take(t, out)
		})
	})
}

// TestHammerInlet has many receivers that mostly give up. No value is lost or duplicated,
// and the last one is delivered before any receiver sees that the channel is closed.
func TestHammerInlet(t *testing.T) {
	t.Parallel()
	for round := range 400 {
		ch := make(chan int, round%2)
		in := op.NewInlet(ch)
		const values, receivers = 5, 4
		var mu sync.Mutex // protects seen
		seen := map[int]int{}
		var wg sync.WaitGroup
		for range receivers {
			wg.Go(func() {
				for {
					ctx, cancel := context.WithCancel(context.Background())
					if rand.IntN(2) == 0 {
						go cancel()
					}
					v, err := op.Perform(ctx, in.Recv())
					cancel()
					if errors.Is(err, op.ErrClosed) {
						return
					}
					if err == nil {
						mu.Lock()
						seen[v]++
						mu.Unlock()
					}
				}
			})
		}
		for i := range values {
			ch <- i
		}
		close(ch)
		wg.Wait()
		for i := range values {
			if seen[i] != 1 {
				t.Errorf("value %d was received %d times", i, seen[i])
			}
		}
	}
}

func TestInletKeepsTheOrder(t *testing.T) {
	t.Parallel()
	ch := make(chan int)
	in := op.NewInlet(ch)
	const values = 2000
	go func() {
		for i := range values {
			ch <- i
		}
		close(ch)
	}()
	want := 0
	for {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		v, err := op.Perform(ctx, in.Recv())
		cancel()
		if errors.Is(err, op.ErrClosed) {
			break
		}
		if err == nil {
			if v != want {
				t.Fatalf("got %d, want %d", v, want)
			}
			want++
		}
	}
	if want != values {
		t.Errorf("got %d values", want)
	}
}

func TestDoneAndClosed(t *testing.T) {
	t.Run("done", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			out := background(t.Context(), op.Done[int](ctx))
			lost := background(t.Context(), op.Choice(op.Done[int](context.Background()), op.Done[int](ctx)))
			mustBlock(t, out)
			cancel(errTest)
			if r := take(t, out); !errors.Is(r.err, errTest) {
				t.Errorf("got %v", r)
			}
			take(t, lost)
			if _, ok, err := op.TryPerform(op.Done[int](ctx)); !ok || !errors.Is(err, errTest) {
				t.Errorf("got %t, %v", ok, err)
			}
		})
	})
	t.Run("closed", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ch := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			lost := background(ctx, op.Closed(ch))
			out := background(t.Context(), op.Closed(ch))
			mustBlock(t, out)
			cancel()
			if r := take(t, lost); !errors.Is(r.err, context.Canceled) {
				t.Errorf("got %v", r)
			}
			close(ch)
			if r := take(t, out); r.err != nil {
				t.Errorf("got %v", r)
			}
			if _, ok, err := op.TryPerform(op.Closed(ch)); !ok || err != nil {
				t.Errorf("got %t, %v", ok, err)
			}
		})
	})
}
