package scope_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

// TestHammer does everything to a tree concurrently: whatever was admitted runs to
// its end before the join is complete, and every finaliser runs once.
func TestHammer(t *testing.T) {
	t.Parallel()
	for range 60 {
		h := &hammer{root: scope.New(context.Background(), "root"), warm: make(chan struct{})}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				s := h.root
				for i := range 40 {
					if i == 25 {
						h.once.Do(func() { close(h.warm) })
					}
					s = h.act(s, rand.IntN(12))
				}
			})
		}
		wg.Go(func() {
			<-h.warm // the join begins in the midst of it all
			for range 3 {
				_, _ = h.root.Join(h.root.Context()) // gives up when the root is cancelled
			}
		})
		wg.Wait()
		if _, err := h.root.Join(context.Background()); err != nil {
			t.Errorf("join: %v", err)
		}
		if n := h.alive.Load(); n != 0 {
			t.Fatalf("%d goroutines or finalisers were left over", n)
		}
	}
}

type hammer struct {
	root  *scope.Scope
	warm  chan struct{}
	once  sync.Once // closes warm
	alive atomic.Int64
}

// selfJoin is the one act that a goroutine of the scope mustn't do.
const selfJoin = 11

// act does something to s, and returns the scope to go on with.
func (h *hammer) act(s *scope.Scope, what int) *scope.Scope {
	inner := func(_ context.Context, s *scope.Scope) (int, error) { h.act(s, rand.IntN(selfJoin)); return 0, nil }
	switch what {
	case 0, 1, 2:
		h.alive.Add(1)
		err := s.Go("", func(ctx context.Context) error {
			defer h.alive.Add(-1)
			if rand.IntN(2) == 0 {
				s.Cancel(errB)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		if err != nil {
			h.alive.Add(-1)
		}
	case 4:
		h.alive.Add(1)
		detach, err := s.Attach(func(bool, scope.Status, error) error { h.alive.Add(-1); return nil })
		if err != nil || detach() {
			h.alive.Add(-1)
		}
		eitherEnd := op.Choice(s.CloseOp(), s.FaultOp(), op.Wrap(s.CancelOp(), func(c *scope.Cancelled) (error, error) { return c, nil }))
		_, _, _ = op.TryPerform(eitherEnd)
	case 3:
		h.alive.Add(1)
		if err := s.Finally(func(bool, scope.Status, error) error { h.alive.Add(-1); return nil }); err != nil {
			h.alive.Add(-1)
		}
	case 5, 6:
		if child, err := s.Child("child"); err == nil {
			return child
		}
		return h.root
	case 7:
		scope.Run(s, "run", inner)
	case 8:
		_, _ = op.PerformRaw(op.Choice(
			scope.RunOp(s, "run", inner),
			scope.RunOp(s, "wait", func(ctx context.Context, _ *scope.Scope) (int, error) { <-ctx.Done(); return 0, ctx.Err() }),
		))
	case 9:
		if s != h.root {
			s.Cancel(errA)
		}
	case 10:
		if s != h.root {
			s.Close(nil)
		}
		_ = s.Report()
	case selfJoin:
		if s != h.root {
			_, _ = s.Join(context.Background())
			return h.root
		}
	}
	return s
}

// TestHammerRunOp races the end of a boundary against its abort: either way, its
// scope has ended when the choice returns.
func TestHammerRunOp(t *testing.T) {
	t.Parallel()
	root := scope.New(context.Background(), "root")
	won := 0
	for range 2000 {
		var inside atomic.Int64
		var stop op.Signal
		boundary := scope.RunOp(root, "child", func(context.Context, *scope.Scope) (int, error) {
			inside.Add(1)
			defer inside.Add(-1)
			stop.Fire()
			return 7, nil
		}, scope.Forget())
		abort := op.Wrap(stop.Wait(), func(struct{}) (r scope.Result[int], err error) { return r, nil })
		r, err := op.PerformRaw(op.Choice(boundary, abort))
		if err != nil || inside.Load() != 0 {
			t.Fatalf("got %v, %d inside", err, inside.Load())
		}
		if r.Status == scope.StatusOK && r.Value == 7 {
			won++
		}
	}
	r := join(t, root)
	if n := r.Omitted.OK + r.Omitted.Cancelled; n != 2000 || r.Omitted.Failed != 0 {
		t.Errorf("%d boundaries ended, %d won: %+v", n, won, r.Omitted)
	}
}

// TestHammerFailFast lets all goroutines fail at once: one is primary, all others
// are extra.
func TestHammerFailFast(t *testing.T) {
	t.Parallel()
	for range 100 {
		s := scope.New(context.Background(), "root")
		start := make(chan struct{})
		const n = 8
		for range n {
			mustGo(t, s, func(context.Context) error { <-start; return errA })
		}
		close(start)
		r := join(t, s)
		if !errors.Is(r.Primary, errA) || len(r.Extra) != n-1 {
			t.Fatalf("got %v and %d extra", r.Primary, len(r.Extra))
		}
	}
}

// TestHammerReport checks that who has waited for a child finds it in its parent's
// report.
func TestHammerReport(t *testing.T) {
	t.Parallel()
	root := scope.New(context.Background(), "root")
	for i := range scope.MaxChildReports {
		child := mustChild(t, root, "child")
		mustGo(t, child, failing(nil))
		_, _ = child.Join(t.Context())
		if n := len(root.Report().Children); n != i+1 {
			t.Fatalf("%d children, want %d", n, i+1)
		}
	}
	join(t, root)
}
