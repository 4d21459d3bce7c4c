package op_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/host/op"
)

// sent is a send whose result is v, so that it can stand in a choice with
// receives.
func sent(c *op.Chan[int], v int) op.Op[int] {
	return op.Wrap(c.Send(v), func(struct{}) (int, error) { return v, nil })
}

func TestChanRendezvous(t *testing.T) {
	tests := []struct {
		name          string
		first, second func(c *op.Chan[int]) op.Op[int]
	}{
		{
			"send waits",
			func(c *op.Chan[int]) op.Op[int] { return sent(c, 5) },
			func(c *op.Chan[int]) op.Op[int] { return c.Recv() },
		},
		{
			"receive waits",
			func(c *op.Chan[int]) op.Op[int] { return c.Recv() },
			func(c *op.Chan[int]) op.Op[int] { return sent(c, 5) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := op.NewChan[int](0)
				first := background(t.Context(), tt.first(c))
				mustBlock(t, first)
				if v := mustPerform(t, tt.second(c)); v != 5 {
					t.Errorf("second got %d", v)
				}
				if r := take(t, first); r.value != 5 || r.err != nil {
					t.Errorf("first got %v", r)
				}
				mustBeEmpty(t, c)
			})
		})
	}
}

func TestChanBuffer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := op.NewChan[int](2)
		mustPerform(t, c.Send(1))
		mustPerform(t, c.Send(2))
		if c.Len() != 2 || c.Cap() != 2 {
			t.Errorf("len %d, cap %d", c.Len(), c.Cap())
		}
		third := background(t.Context(), c.Send(3))
		mustBlock(t, third)
		fourth := background(t.Context(), c.Send(4))
		mustBlock(t, fourth)
		for want := 1; want <= 4; want++ { // also across the end of the ring
			if v := mustPerform(t, c.Recv()); v != want {
				t.Errorf("got %d, want %d", v, want)
			}
		}
		take(t, third)
		take(t, fourth)
		if c.Len() != 0 {
			t.Errorf("len %d", c.Len())
		}
		mustBeEmpty(t, c)
	})
}

func TestChanClose(t *testing.T) {
	t.Run("waiting receive and later ops", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c := op.NewChan[int](0)
			r := background(t.Context(), c.Recv())
			mustBlock(t, r)
			if !c.Close() || c.Close() {
				t.Error("close must report whether the channel was open")
			}
			if got := take(t, r); !errors.Is(got.err, op.ErrClosed) {
				t.Errorf("waiting receive: %v", got.err)
			}
			if _, err := op.Perform(t.Context(), c.Recv()); !errors.Is(err, op.ErrClosed) {
				t.Errorf("receive: %v", err)
			}
			if _, err := op.Perform(t.Context(), c.Send(1)); !errors.Is(err, op.ErrClosed) {
				t.Errorf("send: %v", err)
			}
		})
	})
	t.Run("the buffer can still be received, a waiting send fails", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c := op.NewChan[int](1)
			mustPerform(t, c.Send(1))
			s := background(t.Context(), c.Send(2))
			mustBlock(t, s)
			c.Close()
			if got := take(t, s); !errors.Is(got.err, op.ErrClosed) {
				t.Errorf("waiting send: %v", got.err)
			}
			if v := mustPerform(t, c.Recv()); v != 1 {
				t.Errorf("got %d", v)
			}
			if _, err := op.Perform(t.Context(), c.Recv()); !errors.Is(err, op.ErrClosed) {
				t.Errorf("receive: %v", err)
			}
		})
	})
}

func TestChanFirstComeFirstServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := op.NewChan[int](0)
		var outs []<-chan result[int]
		for range 5 {
			out := background(t.Context(), c.Recv())
			mustBlock(t, out)
			outs = append(outs, out)
		}
		for i, out := range outs {
			mustPerform(t, c.Send(i))
			if r := take(t, out); r.value != i {
				t.Errorf("receiver %d got %d", i, r.value)
			}
		}
	})
}

func TestChoiceNeverMeetsItself(t *testing.T) {
	t.Run("rendezvous", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c := op.NewChan[int](0)
			both := background(t.Context(), op.Choice(sent(c, 7), c.Recv(), sent(c, 8)))
			mustBlock(t, both)
			if v := mustPerform(t, c.Recv()); v != 7 {
				t.Errorf("got %d", v)
			}
			if r := take(t, both); r.value != 7 {
				t.Errorf("choice got %v", r)
			}
			mustBeEmpty(t, c)
		})
	})
	t.Run("two of a kind meet each other", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c := op.NewChan[int](0)
			both := op.Choice(c.Recv(), sent(c, 7), c.Recv())
			first := background(t.Context(), both)
			mustBlock(t, first)
			second := background(t.Context(), both)
			if a, b := take(t, first), take(t, second); a.value != 7 || b.value != 7 {
				t.Errorf("got %v and %v", a, b)
			}
			mustBeEmpty(t, c)
		})
	})
	t.Run("full buffer: the receive doesn't let the same choice's send in", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			c := op.NewChan[int](1)
			mustPerform(t, c.Send(1))
			if v := mustPerform(t, op.Choice(sent(c, 7), c.Recv())); v != 1 || c.Len() != 0 {
				t.Errorf("got %d, len %d", v, c.Len())
			}
			mustBeEmpty(t, c)
		})
	})
}

func TestTwoChoicesMeet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := op.NewChan[int](0), op.NewChan[int](0)
		// Each could meet the other on both channels; they must do so on one.
		first := background(t.Context(), op.Choice(sent(a, 1), op.Wrap(b.Recv(), negate)))
		mustBlock(t, first)
		second := background(t.Context(), op.Choice(sent(b, 2), op.Wrap(a.Recv(), negate)))
		x, y := take(t, first).value, take(t, second).value
		if x != -y || (x != 1 && x != -2) {
			t.Errorf("first got %d, second %d", x, y)
		}
		mustBeEmpty(t, a)
		mustBeEmpty(t, b)
	})
}

func negate(v int) (int, error) { return -v, nil }

// TestLosersLeaveTheQueue checks that an arm that has lost is neither found by
// the other side nor kept.
func TestLosersLeaveTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, other := op.NewChan[int](0), op.NewChan[int](0)
		for range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			cancelled := background(ctx, op.Choice(c.Recv(), sent(other, 1), c.Recv()))
			synctest.Wait()
			cancel()
			if r := take(t, cancelled); !errors.Is(r.err, context.Canceled) {
				t.Fatalf("got %v", r)
			}
		}
		won := background(t.Context(), op.Choice(c.Recv(), other.Recv(), sent(c, 1)))
		mustBlock(t, won)
		mustPerform(t, other.Send(3))
		if r := take(t, won); r.value != 3 {
			t.Errorf("got %v", r)
		}
		mustBeEmpty(t, c)
		mustBeEmpty(t, other)
		if _, ok, _ := op.TryPerform(c.Send(1)); ok {
			t.Error("a send met an arm that had lost")
		}
	})
}

// TestRegistrationMeets makes the peer appear between probe and registration,
// where both sides are already parked in other queues.
func TestRegistrationMeets(t *testing.T) {
	for _, closing := range []bool{false, true} {
		t.Run(map[bool]string{false: "send", true: "close"}[closing], func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c, d := op.NewChan[int](0), op.NewChan[int](0)
				var peer <-chan result[int]
				late := op.New(
					func() (int, bool, error) { return 0, false, nil },
					func(*op.Waiter[int]) {
						if closing {
							c.Close()
							return
						}
						peer = background(t.Context(), op.Choice(d.Recv(), sent(c, 5)))
						synctest.Wait()
					})
				v, err := op.Perform(t.Context(), op.Choice(d.Recv(), late, c.Recv(), d.Recv()))
				if closing {
					if !errors.Is(err, op.ErrClosed) {
						t.Errorf("got %v", err)
					}
				} else if r := take(t, peer); v != 5 || r.value != 5 {
					t.Errorf("got %d, peer %v", v, r)
				}
				mustBeEmpty(t, c)
				mustBeEmpty(t, d)
			})
		})
	}
}

// TestRegistrationPassesStaleOnes makes a party stale between probe and
// registration, and keeps it in the queue.
func TestRegistrationPassesStaleOnes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, never := op.NewChan[int](0), func() (int, bool, error) { return 0, false, nil }
		var winner *op.Waiter[int]
		release := make(chan struct{})
		stale := op.Choice(
			op.New(never, func(w *op.Waiter[int]) { w.OnAbort(func() { <-release }) }), // withdrawn first
			sent(c, 1),
			op.New(never, func(w *op.Waiter[int]) { winner = w }),
		)
		var other <-chan result[int]
		late := op.New(never, func(*op.Waiter[int]) {
			other = background(t.Context(), stale)
			synctest.Wait()
			winner.Complete(9, nil)
			synctest.Wait()
			if s, _ := c.Waiting(); s != 1 {
				t.Fatalf("%d senders in the queue", s)
			}
		})
		later := background(t.Context(), op.Wrap(op.After(time.Second), func(time.Time) (struct{}, error) {
			return op.PerformRaw(c.Send(2))
		}))
		if v := mustPerform(t, op.Choice(late, c.Recv())); v != 2 {
			t.Errorf("got %d", v)
		}
		take(t, later)
		close(release)
		if r := take(t, other); r.value != 9 {
			t.Errorf("other got %v", r)
		}
		mustBeEmpty(t, c)
	})
}

// TestWithdrawnBeforeWraps checks that a wrap finds no trace of the arms that
// have lost.
func TestWithdrawnBeforeWraps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f op.Future[int]
		c, looked := op.NewChan[int](0), 0
		look := func(v int) (int, error) { looked++; mustBeEmpty(t, c); return v, nil }
		lost := op.OnAbort(op.Choice(c.Recv(), sent(c, 1)), func() { _, _ = look(0) })
		out := background(t.Context(), op.Choice(lost, op.Wrap(f.Get(), look)))
		mustBlock(t, out)
		f.Set(1, nil)
		take(t, out)
		if looked != 2 {
			t.Errorf("looked %d times", looked)
		}
	})
}
