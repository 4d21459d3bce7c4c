package scope_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/jobhost/jobhost/host/scope"
)

func TestOutcome(t *testing.T) {
	// Every case acts on a fresh root; synctest.Wait separates what must not race.
	tests := []struct {
		name    string
		do      func(t *testing.T, s *scope.Scope)
		status  scope.Status
		primary error
		reason  error // of the cancellation
		extra   int
	}{
		{"nothing happened", func(*testing.T, *scope.Scope) {}, scope.StatusOK, nil, nil, 0},
		{"goroutines ended well", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, failing(nil))
		}, scope.StatusOK, nil, nil, 0},
		{"closed is not an outcome", func(_ *testing.T, s *scope.Scope) {
			s.Close(errA)
		}, scope.StatusOK, nil, nil, 0},
		{"failed", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, failing(errA))
		}, scope.StatusFailed, errA, errA, 0},
		{"the first error is primary, later ones are extra", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, func(ctx context.Context) error { <-ctx.Done(); return errB })
			mustGo(t, s, failing(errA))
		}, scope.StatusFailed, errA, errA, 1},
		{"a failure stops siblings, which is no error of theirs", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, obedient)
			mustGo(t, s, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
			mustGo(t, s, func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("read: %w", ctx.Err()) })
			mustGo(t, s, failing(errA))
		}, scope.StatusFailed, errA, errA, 0},
		{"cancelled", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, obedient)
			s.Cancel(errA)
		}, scope.StatusCancelled, nil, errA, 0},
		{"the first reason wins", func(_ *testing.T, s *scope.Scope) {
			s.Cancel(errA)
			s.Cancel(errB)
		}, scope.StatusCancelled, nil, errA, 0},
		{"no reason", func(_ *testing.T, s *scope.Scope) {
			s.Cancel(nil)
		}, scope.StatusCancelled, nil, context.Canceled, 0},
		{"failure beats cancellation, whose reason stays", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, func(ctx context.Context) error { <-ctx.Done(); return errB })
			s.Cancel(errA)
		}, scope.StatusFailed, errB, errA, 0},
		{"a cancellation after a failure changes nothing", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, failing(errA))
			synctest.Wait()
			if s.Cancel(errB) {
				t.Error("cancel was first")
			}
		}, scope.StatusFailed, errA, errA, 0},
		{"context.Canceled without cancellation is a failure", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, failing(context.Canceled))
		}, scope.StatusFailed, context.Canceled, context.Canceled, 0},
		{"the package's own error cancels", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, failing(fmt.Errorf("call: %w", &scope.Cancelled{Reason: errA})))
		}, scope.StatusCancelled, nil, errA, 0},
		{"an error beside a cancellation isn't lost", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, func(ctx context.Context) error { <-ctx.Done(); return errors.Join(errB, ctx.Err()) })
			s.Cancel(errA)
		}, scope.StatusCancelled, nil, errA, 1},
		{"several cancellations in one error", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, func(ctx context.Context) error { <-ctx.Done(); return errors.Join(context.Cause(ctx), ctx.Err()) })
			s.Cancel(errA)
		}, scope.StatusCancelled, nil, errA, 0},
		{"panic", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, func(context.Context) error { panic(errA) })
		}, scope.StatusFailed, errA, errA, 0},
		{"a panic is a failure even with a cancellation as value", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, func(ctx context.Context) error { <-ctx.Done(); panic(ctx.Err()) })
			s.Cancel(errA)
		}, scope.StatusFailed, context.Canceled, errA, 0},
		{"goexit", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, func(context.Context) error { runtime.Goexit(); return nil })
		}, scope.StatusFailed, scope.ErrGoexit, scope.ErrGoexit, 0},
		{"a rejection by a cancelled scope is a cancellation", func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, func(ctx context.Context) error { <-ctx.Done(); return s.Go("late", obedient) })
			s.Cancel(errA)
		}, scope.StatusCancelled, nil, errA, 0},
		{"also if that scope is joining already", func(t *testing.T, s *scope.Scope) {
			gate := make(chan struct{})
			mustGo(t, s, func(context.Context) error { <-gate; return s.Go("late", obedient) })
			s.Cancel(errA)
			_, _ = s.Join(s.Context()) // begins it
			close(gate)
		}, scope.StatusCancelled, nil, errA, 0},
		{"a rejection by a closed scope is a failure", func(t *testing.T, s *scope.Scope) {
			gate := make(chan struct{})
			mustGo(t, s, func(context.Context) error { <-gate; return s.Go("late", obedient) })
			s.Close(io.EOF)
			close(gate)
		}, scope.StatusFailed, io.EOF, io.EOF, 0},
		{"finaliser fails", func(t *testing.T, s *scope.Scope) {
			mustFinally(t, s, func(bool, scope.Status, error) error { return errA })
		}, scope.StatusFailed, errA, nil, 0},
		{"finaliser panics, another fails", func(t *testing.T, s *scope.Scope) {
			mustFinally(t, s, func(bool, scope.Status, error) error { return errB })
			mustFinally(t, s, func(bool, scope.Status, error) error { panic(errA) })
		}, scope.StatusFailed, errA, nil, 1},
		{"finaliser fails in a failed scope", func(t *testing.T, s *scope.Scope) {
			mustFinally(t, s, func(bool, scope.Status, error) error { return errB })
			mustGo(t, s, failing(errA))
		}, scope.StatusFailed, errA, errA, 1},
		{"finaliser fails in a cancelled scope, which stays cancelled", func(t *testing.T, s *scope.Scope) {
			mustFinally(t, s, func(bool, scope.Status, error) error { return errB })
			s.Cancel(errA)
		}, scope.StatusCancelled, nil, errA, 1},
		{"finalisers can't be cancelled", func(t *testing.T, s *scope.Scope) {
			mustFinally(t, s, func(bool, scope.Status, error) error {
				if s.Cancel(errA) {
					return errB
				}
				return nil
			})
		}, scope.StatusOK, nil, nil, 0},
		{"a child's failure is the child's", func(t *testing.T, s *scope.Scope) {
			mustGo(t, mustChild(t, s, "child"), failing(errA))
		}, scope.StatusOK, nil, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := scope.New(t.Context(), "root")
				tt.do(t, s)
				synctest.Wait()
				r := join(t, s)
				if r.Status != tt.status || !errors.Is(r.Primary, tt.primary) || len(r.Extra) != tt.extra {
					t.Errorf("got %v, primary %v, extra %v", r.Status, r.Primary, r.Extra)
				}
				if r.Status != s.Status() {
					t.Errorf("status is %v", s.Status())
				}
				if (r.Cancelled != nil) != (tt.reason != nil) || r.Cancelled != nil && !errors.Is(r.Cancelled.Reason, tt.reason) {
					t.Errorf("cancelled: %v", r.Cancelled)
				}
				if err := r.Err(); (err == nil) != (tt.status == scope.StatusOK) {
					t.Errorf("as error: %v", err)
				}
			})
		})
	}
}

func TestStatusBeforeJoin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := scope.New(t.Context(), "root")
		if s.Status() != scope.StatusRunning || s.Report().Err() != nil {
			t.Errorf("new: %v", s.Status())
		}
		s.Cancel(errA)
		if s.Status() != scope.StatusCancelled {
			t.Errorf("cancelled: %v", s.Status())
		}
		join(t, s)
	})
}

func TestErrorsTellWhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := scope.New(t.Context(), "root")
		if err := s.Go("pump", func(context.Context) error { panic("boom") }); err != nil {
			t.Fatal(err)
		}
		r := join(t, s)
		panicked, ok := errors.AsType[*scope.PanicError](r.Primary)
		if !ok || panicked.Value != "boom" || !strings.Contains(string(panicked.Stack), "outcome_test.go") {
			t.Errorf("got %#v", r.Primary)
		}
		for err, want := range map[error]string{
			r.Primary:                        "pump: panic: boom",
			r.Cancelled:                      "scope root cancelled: pump: panic: boom",
			&scope.Cancelled{Reason: io.EOF}: "cancelled: EOF",
			s.Go("late", obedient):           "scope root is joining, goroutine late not admitted: scope root cancelled: pump: panic: boom",
			s.Finally(nil):                   "add finaliser: it is nil",
		} {
			if err.Error() != want {
				t.Errorf("got %q, want %q", err, want)
			}
		}
	})
}
