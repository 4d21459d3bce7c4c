package op_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/jobhost/jobhost/host/op"
)

var errTest = errors.New("test")

func TestPerform(t *testing.T) {
	t.Parallel()
	t.Run("value", func(t *testing.T) {
		if v := mustPerform(t, op.Always(7)); v != 7 {
			t.Errorf("got %d", v)
		}
	})
	t.Run("error is a result", func(t *testing.T) {
		if _, err := op.Perform(t.Context(), op.Fail[int](errTest)); !errors.Is(err, errTest) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an op can be performed again", func(t *testing.T) {
		o := op.Wrap(op.Always(1), func(v int) (int, error) { return v + 1, nil })
		if a, b := mustPerform(t, o), mustPerform(t, o); a != 2 || b != 2 {
			t.Errorf("got %d, %d", a, b)
		}
	})
	t.Run("raw", func(t *testing.T) {
		if v, err := op.PerformRaw(op.Always(7)); v != 7 || err != nil {
			t.Errorf("got %d, %v", v, err)
		}
	})
}

func TestPerformContext(t *testing.T) {
	t.Run("an ended context wins over a ready op, which is not built", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errTest)
		built := false
		_, err := op.Perform(ctx, op.Guard(func() op.Op[int] { built = true; return op.Always(1) }))
		if !errors.Is(err, errTest) || built {
			t.Errorf("got %v, built %t", err, built)
		}
	})
	t.Run("its end aborts the wait with its cause", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			c, aborted := op.NewChan[int](0), 0
			out := background(ctx, op.Choice(
				op.OnAbort(c.Recv(), func() { aborted++ }),
				op.OnAbort(op.Never[int](), func() { aborted++ }),
			))
			mustBlock(t, out)
			cancel(errTest)
			if r := take(t, out); !errors.Is(r.err, errTest) || aborted != 2 {
				t.Errorf("got %v, %d aborted", r.err, aborted)
			}
			mustBeEmpty(t, c)
		})
	})
	t.Run("deadline", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := op.Perform(ctx, op.Never[int]()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestZeroOpIsNever(t *testing.T) {
	t.Parallel()
	var o op.Op[int]
	if _, ok, err := op.TryPerform(o); ok || err != nil {
		t.Errorf("got %t, %v", ok, err)
	}
	if v := mustPerform(t, op.Choice(o, op.Always(3), op.Never[int]())); v != 3 {
		t.Errorf("got %d", v)
	}
	if _, ok, _ := op.TryPerform(op.Choice[int]()); ok {
		t.Error("an empty choice was ready")
	}
	if _, ok, _ := op.TryPerform(op.Wrap(o, func(int) (int, error) { return 1, nil })); ok {
		t.Error("a wrapped zero op was ready")
	}
}

func TestTryPerform(t *testing.T) {
	t.Parallel()
	t.Run("ready", func(t *testing.T) {
		c := op.NewChan[int](1)
		if _, ok, err := op.TryPerform(c.Send(1)); !ok || err != nil {
			t.Errorf("send: %t, %v", ok, err)
		}
		if v, ok, err := op.TryPerform(c.Recv()); v != 1 || !ok || err != nil {
			t.Errorf("recv: %d, %t, %v", v, ok, err)
		}
	})
	t.Run("not ready: every arm has lost", func(t *testing.T) {
		c, lost := op.NewChan[int](0), 0
		o := op.OnAbort(op.Choice(c.Recv(), op.OnAbort(c.Recv(), func() { lost++ })), func() { lost++ })
		if _, ok, err := op.TryPerform(o); ok || err != nil || lost != 2 {
			t.Errorf("got %t, %v, %d lost", ok, err, lost)
		}
		mustBeEmpty(t, c)
	})
	t.Run("the error of a try that isn't ready is not a result", func(t *testing.T) {
		o := op.New(
			func() (int, bool, error) { return 5, false, errTest },
			func(*op.Waiter[int]) {},
		)
		if v, ok, err := op.TryPerform(o); v != 0 || ok || err != nil {
			t.Errorf("got %d, %t, %v", v, ok, err)
		}
	})
}

// TestFair checks that no position is preferred. With 4,000 rounds the deviation
// allowed is more than seven times the standard one.
func TestFair(t *testing.T) {
	t.Parallel()
	ready, idle := func(v int) op.Op[int] { return op.Always(v) }, op.NewChan[int](0).Recv()
	tests := []struct {
		name string
		o    op.Op[int]
		arms int // those that are ready: 0, 1, …
	}{
		{"two", op.Choice(ready(0), ready(1)), 2},
		{"five", op.Choice(ready(0), ready(1), ready(2), ready(3), ready(4)), 5},
		{"two ready of five", op.Choice(ready(0), ready(1), idle, idle, idle), 2},
		{"two ready of five, apart", op.Choice(idle, ready(0), idle, idle, ready(1)), 2},
		{"nested as if flat", op.Choice(ready(0), op.Choice(ready(1), op.Choice(ready(2), ready(3)))), 4},
		{
			"nested under a wrap",
			op.Choice(ready(0), op.Wrap(op.Choice(ready(1), ready(2)), func(v int) (int, error) { return v, nil })),
			3,
		},
		{"built", op.Choice(ready(0), op.Guard(func() op.Op[int] { return op.Choice(ready(1), ready(2)) })), 3},
		{
			"fallbacks",
			op.Choice(op.OrElse(idle, func() (int, error) { return 0, nil }), op.OrElse(idle, func() (int, error) { return 1, nil })),
			2,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const rounds = 4000
			wins := make([]int, tt.arms)
			for range rounds {
				wins[mustPerform(t, tt.o)]++
			}
			want := rounds / tt.arms
			for arm, n := range wins {
				if n < want-250 || n > want+250 {
					t.Errorf("arm %d won %d times, want about %d (all: %v)", arm, n, want, wins)
				}
			}
		})
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	t.Run("inner before outer, types may change", func(t *testing.T) {
		o := op.Wrap(op.Wrap(op.Always(4), func(v int) (float64, error) { return float64(v) / 8, nil }),
			func(v float64) (string, error) {
				if v == 0.5 {
					return "half", nil
				}
				return "", errTest
			})
		if v := mustPerform(t, o); v != "half" {
			t.Errorf("got %q", v)
		}
	})
	t.Run("an error passes Wrap by and WrapResult sees it", func(t *testing.T) {
		failing := op.Wrap(op.Always(1), func(int) (int, error) { return 0, errTest })
		skipped := op.Wrap(failing, func(int) (int, error) { t.Error("called"); return 0, nil })
		mended := op.WrapResult(skipped, func(_ int, err error) (int, error) {
			if !errors.Is(err, errTest) {
				t.Errorf("got %v", err)
			}
			return 9, nil
		})
		if v := mustPerform(t, mended); v != 9 {
			t.Errorf("got %d", v)
		}
	})
	t.Run("only the winner's wraps run", func(t *testing.T) {
		loser := op.Wrap(op.Never[int](), func(int) (int, error) { t.Error("called"); return 0, nil })
		mustPerform(t, op.Choice(loser, op.Always(1)))
	})
	t.Run("after waiting too", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			var f op.Future[int]
			out := background(t.Context(), op.Wrap(f.Get(), func(v int) (int, error) { return v * 2, nil }))
			mustBlock(t, out)
			f.Set(21, nil)
			if r := take(t, out); r.value != 42 {
				t.Errorf("got %v", r)
			}
		})
	})
	t.Run("a wrap may perform", func(t *testing.T) {
		c := op.NewChan[int](1)
		o := op.Wrap(c.Send(5), func(struct{}) (int, error) { return op.PerformRaw(c.Recv()) })
		if v := mustPerform(t, o); v != 5 {
			t.Errorf("got %d", v)
		}
	})
}

func TestTaggedChoices(t *testing.T) {
	t.Parallel()
	t.Run("named", func(t *testing.T) {
		got := mustPerform(t, op.NamedChoice(map[string]op.Op[int]{"a": op.Never[int](), "b": op.Always(2)}))
		if got != (op.Tagged[string, int]{Tag: "b", Value: 2}) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("boolean", func(t *testing.T) {
		if got := mustPerform(t, op.BooleanChoice(op.Always(1), op.Never[int]())); !got.Tag || got.Value != 1 {
			t.Errorf("got %v", got)
		}
		if got := mustPerform(t, op.BooleanChoice(op.Never[int](), op.Always(1))); got.Tag || got.Value != 1 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("first ready, with an error", func(t *testing.T) {
		got, err := op.Perform(t.Context(), op.FirstReady(op.Never[int](), op.Fail[int](errTest)))
		if got.Tag != 1 || !errors.Is(err, errTest) {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("race", func(t *testing.T) {
		o := op.Race(func(i int, v string, err error) (int, error) { return i*10 + len(v), err },
			op.Never[string](), op.Never[string](), op.Always("abc"))
		if got := mustPerform(t, o); got != 23 {
			t.Errorf("got %d", got)
		}
	})
}

// TestLosersAreNotKeptAlive checks that a performing that is over can be
// collected, though what its losing arms waited for is still to come.
func TestLosersAreNotKeptAlive(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var never op.Signal
	never2, in := make(chan struct{}), op.NewInlet(make(chan struct{}))
	payloads := op.NewChan[*[100]byte](0)
	tests := []struct {
		name string
		o    op.Op[struct{}]
	}{
		{"timer", op.Wrap(op.After(time.Hour), func(time.Time) (v struct{}, err error) { return v, nil })},
		{"context", op.Done[struct{}](ctx)},
		{"signal", never.Wait()},
		{"closed", op.Closed(never2)},
		{"inlet", in.Recv()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var wake op.Signal
			kept, performed := make(chan weak.Pointer[[100]byte], 1), make(chan struct{})
			go func() {
				defer close(performed)
				payload := new([100]byte) // the performing refers to it
				kept <- weak.Make(payload)
				_, _ = op.PerformRaw(op.Choice(tt.o, payloads.Send(payload), op.Guard(wake.Wait)))
			}()
			p := <-kept
			for senders := 0; senders == 0; senders, _ = payloads.Waiting() {
				runtime.Gosched()
			}
			wake.Fire()
			<-performed
			// The runtime may keep a stopped timer for a little while.
			for start := time.Now(); p.Value() != nil; runtime.GC() {
				if time.Since(start) > 20*time.Second {
					t.Fatal("is kept alive")
				}
			}
		})
	}
}

func TestTimers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		start := time.Now()
		tick := op.After(time.Second)
		for i := 1; i <= 3; i++ { // each performing has its own clock
			if now := mustPerform(t, tick); now.Sub(start) != time.Duration(i)*time.Second {
				t.Errorf("round %d at %v", i, now.Sub(start))
			}
		}
		at := op.At(start.Add(5 * time.Second))
		mustPerform(t, at)
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("at: %v", d)
		}
		if _, ok, _ := op.TryPerform(at); !ok {
			t.Error("a past instant isn't ready")
		}
		if _, ok, _ := op.TryPerform(op.After(0)); !ok {
			t.Error("no delay isn't ready")
		}
		mustPerform(t, op.Choice(op.After(time.Hour), op.After(time.Second)))
		synctest.Wait()
		if d := time.Since(start); d != 6*time.Second {
			t.Errorf("choice: %v", d)
		}
	})
}
