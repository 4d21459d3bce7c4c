package hub_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/host/hub"
	"github.com/jobhost/jobhost/host/op"
)

func TestNextOp(t *testing.T) {
	t.Parallel()
	type outcome struct {
		item hub.Item[int]
		err  error
	}
	tests := []struct {
		name   string
		happen func(h *hub.Hub[int], s *hub.Subscription[int], cancel context.CancelFunc)
		want   int
		err    error
		after  []int // what is unread then
	}{
		{"item", func(h *hub.Hub[int], _ *hub.Subscription[int], _ context.CancelFunc) {
			h.Publish("a", 1)
			h.Publish("a", 2)
		}, 1, nil, []int{2}},
		{"end of the hub", func(h *hub.Hub[int], _ *hub.Subscription[int], _ context.CancelFunc) { h.Close(nil) }, 0, hub.ErrClosed, nil},
		{"end of the subscription", func(_ *hub.Hub[int], s *hub.Subscription[int], _ context.CancelFunc) { s.Close() }, 0, hub.ErrClosed, nil},
		{
			"end of the context, then an item",
			func(h *hub.Hub[int], _ *hub.Subscription[int], cancel context.CancelFunc) {
				cancel()
				synctest.Wait()
				h.Publish("a", 3)
			},
			0, context.Canceled,
			[]int{3},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := hub.New[int](hub.Options{})
				s := h.Subscribe(hub.Query{Key: "a"})
				defer s.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				out := make(chan outcome, 1)
				go func() {
					item, err := op.Perform(ctx, op.Choice(s.NextOp(), op.Never[hub.Item[int]]()))
					out <- outcome{item, err}
				}()
				synctest.Wait()
				tt.happen(h, s, cancel)
				if got := <-out; got.item.Value != tt.want || !errors.Is(got.err, tt.err) {
					t.Errorf("got %+v", got)
				}
				for _, want := range tt.after {
					if item, ok, err := s.TryNext(); item.Value != want || !ok || err != nil {
						t.Errorf("unread %v %v %v, want %d", item.Value, ok, err, want)
					}
				}
			})
		})
	}
}

// TestHammerNextOp lets several readers share two subscriptions, with choices that
// take from either and give up at any time: each item is taken once.
func TestHammerNextOp(t *testing.T) {
	t.Parallel()
	const readers, items = 4, 3000
	h := hub.New[int](hub.Options{Buffer: items})
	subs := []*hub.Subscription[int]{h.Subscribe(hub.Query{Key: "a"}), h.Subscribe(hub.Query{Key: "b"})}
	var mu sync.Mutex // protects seen
	seen := map[uint64]int{}
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for {
				ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
				item, err := op.Perform(ctx, op.Choice(subs[0].NextOp(), subs[1].NextOp()))
				cancel()
				switch {
				case err == nil:
					mu.Lock()
					seen[item.Seq]++
					mu.Unlock()
				case errors.Is(err, hub.ErrClosed):
					return
				}
			}
		})
	}
	for i := range items {
		h.Publish([]string{"a", "b"}[i%2], i)
	}
	h.Close(nil)
	wg.Wait()
	for _, s := range subs { // what one still had when the other had ended
		for {
			item, ok, _ := s.TryNext()
			if !ok {
				break
			}
			seen[item.Seq]++
		}
	}
	for seq := range uint64(items) {
		if seen[seq+1] != 1 {
			t.Fatalf("item %d was taken %d times", seq+1, seen[seq+1])
		}
	}
}

// The next item, or a limit of time.
func ExampleSubscription_NextOp() {
	h := hub.New[string](hub.Options{})
	s := h.Subscribe(hub.Query{Key: "job-1"})
	defer s.Close()
	next := op.Choice(
		op.Wrap(s.NextOp(), func(item hub.Item[string]) (string, error) { return item.Value, nil }),
		op.Wrap(op.After(time.Millisecond), func(time.Time) (string, error) { return "nothing yet", nil }),
	)
	fmt.Println(op.PerformRaw(next))
	h.Publish("job-1", "ended")
	fmt.Println(op.PerformRaw(next))
	// Output:
	// nothing yet <nil>
	// ended <nil>
}

// TestPublishedBetweenProbeAndWait publishes after the op was probed and before it
// registers.
func TestPublishedBetweenProbeAndWait(t *testing.T) {
	t.Parallel()
	for range 30 { // arms are probed in any order
		h := hub.New[int](hub.Options{})
		s := h.Subscribe(hub.Query{})
		publish := sync.OnceFunc(func() { h.Publish("a", 1) })
		meanwhile := op.New(
			func() (v hub.Item[int], ok bool, err error) { publish(); return v, false, nil },
			func(*op.Waiter[hub.Item[int]]) {},
		)
		if item, err := op.Perform(t.Context(), op.Choice(s.NextOp(), meanwhile)); item.Value != 1 || err != nil {
			t.Fatalf("got %v, %v", item.Value, err)
		}
		if _, ok, _ := s.TryNext(); ok {
			t.Fatal("it was taken and is there still")
		}
		s.Close()
	}
}

// TestReadersShare: of several that wait, as many are woken as there are items.
func TestReadersShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const readers, rounds = 4, 300
		h := hub.New[int](hub.Options{})
		s := h.Subscribe(hub.Query{})
		for range rounds {
			var wg sync.WaitGroup
			for range readers {
				wg.Go(func() {
					if _, err := s.Next(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			for i := range readers {
				h.Publish("a", i)
			}
			wg.Wait()
		}
	})
}
