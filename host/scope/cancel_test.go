package scope_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/host/scope"
)

func TestCancelGoesDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		root := scope.New(t.Context(), "root")
		a := mustChild(t, root, "a")
		aa := mustChild(t, a, "aa")
		b := mustChild(t, root, "b")
		b.Cancel(errB)
		a.Cancel(errA)
		if root.Status() != scope.StatusRunning || root.Context().Err() != nil {
			t.Error("cancellation went up")
		}
		if root.Cancel(nil); root.Status() != scope.StatusCancelled {
			t.Errorf("root is %v", root.Status())
		}
		for s, want := range map[*scope.Scope]error{a: errA, aa: errA, b: errB} {
			if !errors.Is(context.Cause(s.Context()), want) || s.Status() != scope.StatusCancelled {
				t.Errorf("%s: %v, %v", s.Path(), s.Status(), context.Cause(s.Context()))
			}
		}
		join(t, root)
	})
}

func TestFailureGoesDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		root := scope.New(t.Context(), "root")
		a := mustChild(t, root, "a")
		mustGo(t, a, obedient)
		mustGo(t, root, failing(errA))
		r := join(t, root)
		if got := r.Children[0]; got.Status != scope.StatusCancelled || !errors.Is(got.Cancelled, errA) || got.Cancelled.Scope != "root" {
			t.Errorf("child: %v, %v", got.Status, got.Err())
		}
	})
}

func TestRootFollowsContext(t *testing.T) {
	t.Run("cancelled", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			root := scope.New(ctx, "root")
			child := mustChild(t, root, "child")
			mustGo(t, child, obedient)
			cancel(errA)
			synctest.Wait()
			if r := join(t, root); r.Status != scope.StatusCancelled || !errors.Is(r.Err(), errA) {
				t.Errorf("got %v, %v", r.Status, r.Err())
			}
		})
	})
	t.Run("timed out", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			root := scope.New(ctx, "root")
			mustGo(t, root, obedient)
			if r := join(t, root); !errors.Is(r.Cancelled, context.DeadlineExceeded) {
				t.Errorf("got %v", r.Err())
			}
		})
	})
	t.Run("from the start", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		root := scope.New(ctx, "root")
		if err := root.Go("", obedient); err == nil {
			t.Error("admitted")
		}
		join(t, root)
	})
	t.Run("not after the join", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			root := scope.New(ctx, "root")
			join(t, root)
			cancel()
			synctest.Wait()
			if root.Status() != scope.StatusOK {
				t.Errorf("got %v", root.Status())
			}
		})
	})
}

func TestContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	root := scope.New(context.WithValue(t.Context(), key{}, "v"), "root")
	child := mustChild(t, root, "child")
	ctx, cancel := context.WithCancel(child.Context())
	defer cancel()
	if scope.From(ctx) != child || scope.From(root.Context()) != root || scope.From(t.Context()) != nil {
		t.Error("the context must carry its scope")
	}
	if ctx.Value(key{}) != "v" {
		t.Error("values of the root's context are lost")
	}
	if child.Parent() != root || child.Path() != "root/child" || child.Name() != "child" || child.ID() == root.ID() {
		t.Errorf("got %v, %s, %s, %d", child.Parent(), child.Path(), child.Name(), child.ID())
	}
	child.Cancel(errA)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), errA) || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("got %v", context.Cause(ctx))
	}
	join(t, root)
	if !errors.Is(context.Cause(root.Context()), scope.ErrEnded) {
		t.Errorf("after the join: %v", context.Cause(root.Context()))
	}
}
