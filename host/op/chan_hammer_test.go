package op_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/jobhost/jobhost/host/op"
)

// TestHammerChoices lets goroutines perform random choices over a few channels
// until they all have met or given up, and then checks that every value that was
// sent was received exactly once and that no goroutine waits while a partner is
// waiting.
func TestHammerChoices(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 3} {
		for range 4 {
			synctest.Test(t, func(t *testing.T) { hammerChoices(t, size) })
		}
	}
}

// exchange collects what was handed over.
type exchange struct {
	mu       sync.Mutex // protects the maps
	sent     map[int]int
	received map[int]int
}

func (x *exchange) count(m map[int]int, v int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	m[v]++
}

// arm is one random arm: it counts what it has handed over when it wins.
func (x *exchange) arm(c *op.Chan[int], value int) op.Op[struct{}] {
	if rand.IntN(2) == 0 {
		return op.Wrap(c.Send(value), func(v struct{}) (struct{}, error) { x.count(x.sent, value); return v, nil })
	}
	return op.Wrap(c.Recv(), func(v int) (struct{}, error) { x.count(x.received, v); return struct{}{}, nil })
}

func hammerChoices(t *testing.T, size int) {
	const workers, rounds, channels = 8, 300, 3
	x := &exchange{sent: map[int]int{}, received: map[int]int{}}
	chans := make([]*op.Chan[int], channels)
	for i := range chans {
		chans[i] = op.NewChan[int](size)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var value, wins atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				arms := make([]op.Op[struct{}], 1+rand.IntN(5))
				before := value.Add(int64(len(arms)))
				for i := range arms {
					arms[i] = x.arm(chans[rand.IntN(channels)], int(before)-i)
				}
				_, err := op.Perform(ctx, op.Choice(arms...))
				if errors.Is(err, context.Canceled) {
					return
				}
				if err != nil {
					t.Errorf("perform: %v", err)
				}
				wins.Add(1)
			}
		})
	}
	synctest.Wait() // goroutines still running wait for a partner that doesn't exist
	for _, c := range chans {
		if c.Stuck() {
			t.Error("a sender and a receiver wait beside each other")
		}
	}
	cancel()
	wg.Wait()
	for _, c := range chans {
		mustBeEmpty(t, c)
		for c.Len() > 0 {
			v, _ := op.PerformRaw(c.Recv())
			x.received[v]++
			wins.Add(1)
		}
	}
	x.check(t, int(wins.Load()))
}

func (x *exchange) check(t *testing.T, wins int) {
	t.Helper()
	for v, n := range x.sent {
		if n != 1 || x.received[v] != 1 {
			t.Errorf("value %d: sent %d times, received %d times", v, n, x.received[v])
		}
	}
	if len(x.sent) != len(x.received) || len(x.sent)+len(x.received) != wins {
		t.Errorf("%d sent, %d received, %d wins", len(x.sent), len(x.received), wins)
	}
}

// TestHammerCrossing lets pairs of choices meet on two channels in opposite
// order, from several goroutines and with real concurrency.
func TestHammerCrossing(t *testing.T) {
	t.Parallel()
	a, b := op.NewChan[int](0), op.NewChan[int](0)
	const rounds = 5000
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range rounds {
				if _, err := op.PerformRaw(op.Choice(sent(a, 1), op.Wrap(b.Recv(), negate))); err != nil {
					t.Errorf("perform: %v", err)
				}
			}
		})
		wg.Go(func() {
			for range rounds {
				if _, err := op.PerformRaw(op.Choice(sent(b, 1), op.Wrap(a.Recv(), negate))); err != nil {
					t.Errorf("perform: %v", err)
				}
			}
		})
	}
	wg.Wait()
	mustBeEmpty(t, a)
	mustBeEmpty(t, b)
}

// TestHammerCancel races commits against cancellations: a value is handed over
// exactly when the sender says so.
func TestHammerCancel(t *testing.T) {
	t.Parallel()
	c := op.NewChan[int](0)
	const rounds = 3000
	var sends, recvs atomic.Int64
	side := func(o func() op.Op[int], wins *atomic.Int64) func() {
		return func() {
			for range rounds {
				ctx, cancel := context.WithCancel(context.Background())
				go cancel()
				if _, err := op.Perform(ctx, o()); err == nil {
					wins.Add(1)
				}
				cancel()
			}
		}
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(side(func() op.Op[int] { return sent(c, 1) }, &sends))
		wg.Go(side(func() op.Op[int] { return c.Recv() }, &recvs))
	}
	wg.Wait()
	if sends.Load() != recvs.Load() {
		t.Errorf("%d sends and %d receives won", sends.Load(), recvs.Load())
	}
	mustBeEmpty(t, c)
}

// TestHammerClose closes a channel among senders and receivers: everything that
// was sent is received, and everyone returns.
func TestHammerClose(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 2} {
		for range 50 {
			c := op.NewChan[int](size)
			var sends, recvs atomic.Int64
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					for i := 0; ; i++ {
						if _, err := op.PerformRaw(c.Send(i)); err != nil {
							return
						}
						if sends.Add(1) == 40 {
							c.Close()
						}
					}
				})
				wg.Go(func() {
					for {
						if _, err := op.PerformRaw(c.Recv()); err != nil {
							return
						}
						recvs.Add(1)
					}
				})
			}
			wg.Wait()
			if sends.Load() != recvs.Load() {
				t.Fatalf("size %d: %d sent, %d received", size, sends.Load(), recvs.Load())
			}
			mustBeEmpty(t, c)
		}
	}
}
