package scope_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

func TestRun(t *testing.T) {
	tests := []struct {
		name   string
		body   scope.Body[int]
		status scope.Status
		value  int
		err    error
	}{
		{"ok", func(context.Context, *scope.Scope) (int, error) { return 7, nil }, scope.StatusOK, 7, nil},
		{"error", func(context.Context, *scope.Scope) (int, error) { return 7, errA }, scope.StatusFailed, 0, errA},
		{"panic", func(context.Context, *scope.Scope) (int, error) { panic(errA) }, scope.StatusFailed, 0, errA},
		{"cancels itself", func(ctx context.Context, s *scope.Scope) (int, error) {
			s.Cancel(errB)
			return 7, ctx.Err()
		}, scope.StatusCancelled, 0, errB},
		{"a goroutine of it fails", func(ctx context.Context, s *scope.Scope) (int, error) {
			if err := s.Go("", failing(errA)); err != nil {
				return 0, err
			}
			<-ctx.Done()
			return 7, nil
		}, scope.StatusFailed, 0, errA},
		{"waits for its goroutines", func(_ context.Context, s *scope.Scope) (int, error) {
			return 7, s.Go("", func(context.Context) error { time.Sleep(time.Hour); return errB })
		}, scope.StatusFailed, 0, errB},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				root := scope.New(t.Context(), "root")
				// Direct and as an op, it must be the same.
				direct := scope.Run(root, "child", tt.body)
				byOp, err := op.Perform(t.Context(), scope.RunOp(root, "child", tt.body))
				if err != nil {
					t.Errorf("as op: %v", err)
				}
				for _, r := range []scope.Result[int]{direct, byOp} {
					if r.Status != tt.status || r.Value != tt.value || !errors.Is(r.Err(), tt.err) || r.Name != "child" {
						t.Errorf("got %v, %d, %v", r.Status, r.Value, r.Err())
					}
				}
				if r := join(t, root); r.Status != scope.StatusOK || len(r.Children) != 2 {
					t.Errorf("root: %v, %d children", r.Status, len(r.Children))
				}
			})
		})
	}
}

func TestRunRejected(t *testing.T) {
	tests := []struct {
		name   string
		do     func(s *scope.Scope)
		status scope.Status
		reason error
	}{
		{"closed", func(s *scope.Scope) { s.Close(errA) }, scope.StatusFailed, errA},
		{"cancelled", func(s *scope.Scope) { s.Cancel(errA) }, scope.StatusCancelled, errA},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				root := scope.New(t.Context(), "root")
				tt.do(root)
				body := func(context.Context, *scope.Scope) (int, error) { t.Error("ran"); return 0, nil }
				byOp, _ := op.Perform(t.Context(), scope.RunOp(root, "child", body))
				for _, r := range []scope.Result[int]{scope.Run(root, "child", body), byOp} {
					if r.Status != tt.status || !errors.Is(r.Err(), tt.reason) || r.ID != 0 {
						t.Errorf("got %v, %v, id %d", r.Status, r.Err(), r.ID)
					}
				}
				join(t, root)
			})
		})
	}
}

func TestRunOpAborted(t *testing.T) {
	slow := func(j *journal, name string) scope.Body[int] {
		return func(ctx context.Context, s *scope.Scope) (int, error) {
			_ = s.Finally(j.finaliser(name + " finalised"))
			<-ctx.Done()
			j.note(name + " told")
			time.Sleep(time.Minute)
			return 0, ctx.Err()
		}
	}
	other := func(j *journal) op.Op[scope.Result[int]] {
		return op.Wrap(op.After(time.Second), func(time.Time) (r scope.Result[int], err error) {
			j.note("other won")
			return r, nil
		})
	}
	t.Run("the choice returns after the join", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			var j journal
			root := scope.New(t.Context(), "root")
			start := time.Now()
			if _, err := op.Perform(t.Context(), op.Choice(scope.RunOp(root, "slow", slow(&j, "slow")), other(&j))); err != nil {
				t.Error(err)
			}
			j.check(t, "slow told", "slow finalised", "other won")
			if d := time.Since(start); d != time.Minute+time.Second {
				t.Errorf("took %v", d)
			}
			r := join(t, root).Children[0]
			if r.Status != scope.StatusCancelled || !errors.Is(r.Cancelled.Reason, scope.ErrAborted) {
				t.Errorf("got %v", r.Err())
			}
		})
	})
	t.Run("several losers end together", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			var j journal
			root := scope.New(t.Context(), "root")
			start := time.Now()
			_, _ = op.Perform(t.Context(), op.Choice(
				scope.RunOp(root, "a", slow(&j, "a")), other(&j), scope.RunOp(root, "b", slow(&j, "b"))))
			if d := time.Since(start); d != time.Minute+time.Second {
				t.Errorf("took %v", d)
			}
			join(t, root)
		})
	})
	t.Run("the context ends", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			var j journal
			root := scope.New(context.Background(), "root")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := op.Perform(ctx, scope.RunOp(root, "slow", slow(&j, "slow")))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			j.check(t, "slow told", "slow finalised")
			join(t, root)
		})
	})
	t.Run("a ready arm doesn't even start it", func(t *testing.T) {
		t.Parallel()
		root := scope.New(t.Context(), "root")
		never := func(context.Context, *scope.Scope) (int, error) { t.Error("ran"); return 0, nil }
		o := scope.RunOp(root, "child", never)
		_, _ = op.Perform(t.Context(), op.Choice(o, op.Always(scope.Result[int]{})))
		if _, ok, _ := op.TryPerform(o); ok {
			t.Error("ready at once")
		}
		join(t, root)
	})
	t.Run("the result of a loser is discarded", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			root := scope.New(t.Context(), "root")
			done := make(chan struct{})
			quick := func(context.Context, *scope.Scope) (int, error) { close(done); return 7, nil }
			late := op.New( // completes once the body is through, and still before the boundary can
				func() (r scope.Result[int], ok bool, err error) { return r, false, nil },
				func(w *op.Waiter[scope.Result[int]]) { w.Complete(scope.Result[int]{Value: 1}, nil) },
			)
			r, _ := op.Perform(t.Context(), op.Choice(late, scope.RunOp(root, "quick", quick)))
			if r.Value != 1 {
				t.Errorf("got %d", r.Value)
			}
			join(t, root)
		})
	})
}

func TestRunGoexit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		root := scope.New(t.Context(), "root")
		var j journal
		body := func(_ context.Context, s *scope.Scope) (int, error) {
			_ = s.Finally(j.finaliser("finalised"))
			runtime.Goexit()
			return 0, nil
		}
		go scope.Run(root, "direct", body)
		synctest.Wait()
		r, err := op.Perform(t.Context(), scope.RunOp(root, "op", body))
		if err != nil || !errors.Is(r.Err(), scope.ErrGoexit) {
			t.Errorf("got %v, %v", r.Err(), err)
		}
		j.check(t, "finalised", "finalised")
		join(t, root)
	})
}

func TestPerform(t *testing.T) {
	t.Run("ok", func(t *testing.T) {
		t.Parallel()
		s := scope.New(t.Context(), "root")
		if v, err := scope.Perform(s.Context(), op.Always(7)); v != 7 || err != nil {
			t.Errorf("got %d, %v", v, err)
		}
		if _, err := scope.Perform(s.Context(), op.Fail[int](errA)); !errors.Is(err, errA) {
			t.Errorf("got %v", err)
		}
		if v, err := scope.Perform(t.Context(), op.Always(7)); v != 7 || err != nil {
			t.Errorf("without scope: %d, %v", v, err)
		}
		join(t, s)
		if _, err := scope.Perform(s.Context(), op.Always(7)); !errors.Is(err, scope.ErrEnded) {
			t.Errorf("after the join: %v", err)
		}
	})
	t.Run("cancelled while waiting: escapes as cancellation", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := scope.New(t.Context(), "root")
			var got error
			mustGo(t, s, func(ctx context.Context) error {
				_, got = scope.Perform(ctx, op.Never[int]())
				return got
			})
			mustGo(t, s, failing(errA))
			r := join(t, s)
			if _, ok := errors.AsType[*scope.Cancelled](got); !ok || !errors.Is(got, errA) || len(r.Extra) != 0 {
				t.Errorf("got %v, extra %v", got, r.Extra)
			}
		})
	})
	t.Run("a result that comes with the cancellation is discarded", func(t *testing.T) {
		t.Parallel()
		s := scope.New(t.Context(), "root")
		o := op.Wrap(op.Always(7), func(v int) (int, error) { s.Cancel(errA); return v, nil })
		if v, err := scope.Perform(s.Context(), o); v != 0 || !errors.Is(err, errA) {
			t.Errorf("got %d, %v", v, err)
		}
		join(t, s)
	})
	t.Run("its own deadline", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := scope.New(t.Context(), "root")
			ctx, cancel := context.WithTimeout(s.Context(), time.Second)
			defer cancel()
			if _, err := scope.Perform(ctx, op.Never[int]()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			join(t, s)
		})
	})
}

func TestTryOp(t *testing.T) {
	try := func(t *testing.T, s *scope.Scope, o op.Op[int]) (scope.Attempt[int], error) {
		t.Helper()
		return op.Perform(t.Context(), scope.TryOp(s, o))
	}
	t.Run("ok", func(t *testing.T) {
		t.Parallel()
		s := scope.New(t.Context(), "root")
		if a, err := try(t, s, op.Always(7)); err != nil || a != (scope.Attempt[int]{Status: scope.StatusOK, Value: 7}) {
			t.Errorf("got %v, %v", a, err)
		}
		if a, err := try(t, s, op.Fail[int](errA)); !errors.Is(err, errA) || a.Status != scope.StatusOK {
			t.Errorf("got %v, %v", a, err)
		}
		join(t, s)
		if a, err := try(t, s, op.Always(7)); err != nil || a.Status != scope.StatusCancelled || !errors.Is(a.Reason, scope.ErrEnded) {
			t.Errorf("after the join: %v, %v", a, err)
		}
	})
	t.Run("cancelled before: the op isn't even tried", func(t *testing.T) {
		t.Parallel()
		s := scope.New(t.Context(), "root")
		s.Cancel(errA)
		c := op.NewChan[int](1)
		_, _, _ = op.TryPerform(c.Send(1))
		if a, err := try(t, s, c.Recv()); err != nil || a.Status != scope.StatusCancelled || !errors.Is(a.Reason, errA) || c.Len() != 1 {
			t.Errorf("got %v, %v, %d left", a, err, c.Len())
		}
		join(t, s)
	})
	t.Run("failed while waiting", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := scope.New(t.Context(), "root")
			mustGo(t, s, func(context.Context) error { time.Sleep(time.Second); return errA })
			if a, err := try(t, s, op.Never[int]()); err != nil || a.Status != scope.StatusFailed || !errors.Is(a.Reason, errA) {
				t.Errorf("got %v, %v", a, err)
			}
			join(t, s)
		})
	})
	t.Run("cancelled by the winner's wrap", func(t *testing.T) {
		t.Parallel()
		s := scope.New(t.Context(), "root")
		o := op.Wrap(op.Always(7), func(v int) (int, error) { s.Cancel(errA); return v, nil })
		if a, err := try(t, s, o); err != nil || a.Status != scope.StatusCancelled || a.Value != 0 {
			t.Errorf("got %v, %v", a, err)
		}
		join(t, s)
	})
}
