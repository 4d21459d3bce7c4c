package op_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost/host/op"
)

// eagerly performs o beside a cancellation that comes at any time, and reports
// whether o won.
func eagerly[T any](o op.Op[T]) (T, bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rand.IntN(2) == 0 {
		go cancel()
	}
	v, err := op.Perform(ctx, o)
	return v, err == nil
}

// TestHammerSemaphore races acquiring against giving up: never are more permits
// out than there are, and in the end all are back.
func TestHammerSemaphore(t *testing.T) {
	t.Parallel()
	const permits, workers, rounds = 3, 8, 1000
	s := op.NewSemaphore(permits)
	var out atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				if _, ok := eagerly(s.Acquire()); !ok {
					continue
				}
				if n := out.Add(1); n > permits {
					t.Errorf("%d permits are out", n)
				}
				out.Add(-1)
				s.Release()
			}
		})
	}
	wg.Wait()
	if s.Free() != permits {
		t.Errorf("%d permits are free, want %d", s.Free(), permits)
	}
}

// TestHammerWaitGroup lets many wait for what others begin and end, over and over.
func TestHammerWaitGroup(t *testing.T) {
	t.Parallel()
	const workers, rounds = 4, 1000
	var g op.WaitGroup
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				g.Add(1)
				g.Done()
			}
		})
		wg.Go(func() {
			for range rounds {
				eagerly(g.Wait())
			}
		})
	}
	wg.Wait()
	if _, ok, _ := op.TryPerform(g.Wait()); !ok || g.Count() != 0 {
		t.Errorf("count %d", g.Count())
	}
}

// TestHammerPulse lets readers follow a pulse until it is closed: each of them
// sees the numbers rise, up to the last beat.
func TestHammerPulse(t *testing.T) {
	t.Parallel()
	const readers, beats = 4, 3000
	var p op.Pulse
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for seen := uint64(0); ; {
				n, err := op.PerformRaw(p.Changed(seen))
				if err != nil {
					if seen != 2*beats || !errors.Is(err, op.ErrClosed) {
						t.Errorf("ended after beat %d: %v", seen, err)
					}
					return
				}
				if n <= seen {
					t.Errorf("beat %d after %d", n, seen)
				}
				seen = n
			}
		})
	}
	var beating sync.WaitGroup
	for range 2 {
		beating.Go(func() {
			for range beats {
				p.Beat()
			}
		})
	}
	beating.Wait()
	p.Close()
	wg.Wait()
}

// TestHammerMailbox sends to a mailbox of each policy, with receivers that come
// and go: what was taken in is received once or counted as lost.
func TestHammerMailbox(t *testing.T) {
	t.Parallel()
	for _, full := range []op.Policy{op.Block, op.Reject, op.DropOldest} {
		const workers, rounds = 4, 1000
		box := op.NewMailbox[int](2, full)
		var sent, received atomic.Int64
		var senders, receivers sync.WaitGroup
		for range workers {
			senders.Go(func() {
				for i := range rounds {
					if _, ok := eagerly(box.Send(i)); ok {
						sent.Add(1)
					}
				}
			})
			receivers.Go(func() {
				for {
					if _, ok := eagerly(box.Recv()); ok {
						received.Add(1)
					} else if _, err := op.PerformRaw(box.Recv()); err != nil {
						return
					} else {
						received.Add(1)
					}
				}
			})
		}
		senders.Wait()
		box.Close()
		receivers.Wait()
		if got := received.Load() + int64(box.Lost()); got != sent.Load() || box.Len() != 0 {
			t.Errorf("policy %d: %d sent, %d received or lost, %d left", full, sent.Load(), got, box.Len())
		}
	}
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	for name, misuse := range map[string]func(){
		"semaphore of nothing":      func() { op.NewSemaphore(0) },
		"release of what is free":   func() { op.NewSemaphore(1).Release() },
		"count below zero":          func() { new(op.WaitGroup).Done() },
		"mailbox without room":      func() { op.NewMailbox[int](0, op.Block) },
		"mailbox of unknown policy": func() { op.NewMailbox[int](1, op.DropOldest+1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			misuse()
		})
	}
}

// TestBetweenProbeAndWait makes each condition true after its op was probed and
// before that registers.
func TestBetweenProbeAndWait(t *testing.T) {
	t.Parallel()
	void := func(o op.Op[uint64]) op.Op[struct{}] {
		return op.Wrap(o, func(uint64) (struct{}, error) { return struct{}{}, nil })
	}
	tests := map[string]func() (o op.Op[struct{}], happen func()){
		"semaphore": func() (op.Op[struct{}], func()) {
			s := op.NewSemaphore(1)
			_, _ = op.PerformRaw(s.Acquire())
			return s.Acquire(), s.Release
		},
		"wait group": func() (op.Op[struct{}], func()) {
			g := new(op.WaitGroup)
			g.Add(1)
			return g.Wait(), g.Done
		},
		"pulse": func() (op.Op[struct{}], func()) {
			p := new(op.Pulse)
			return void(p.Changed(0)), func() { p.Beat() }
		},
		"mailbox": func() (op.Op[struct{}], func()) {
			m := op.NewMailbox[int](1, op.Block)
			_, _ = op.PerformRaw(m.Send(1))
			return m.Send(2), func() { _, _ = op.PerformRaw(m.Recv()) }
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for range 30 { // arms are probed in any order
				o, happen := test()
				once := sync.OnceFunc(happen)
				meanwhile := op.New(
					func() (v struct{}, ok bool, err error) { once(); return v, false, nil },
					func(*op.Waiter[struct{}]) {},
				)
				mustPerform(t, op.Choice(o, meanwhile))
			}
		})
	}
}
