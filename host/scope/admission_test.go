package scope_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/jobhost/jobhost/host/scope"
)

// TestRejection checks the reasons and their order: each case does what the one
// before it does, and more.
func TestRejection(t *testing.T) {
	closeIt := func(_ *testing.T, s *scope.Scope) { s.Close(errA) }
	cancel := func(_ *testing.T, s *scope.Scope) { s.Cancel(errB) }
	fail := func(t *testing.T, s *scope.Scope) {
		mustGo(t, s, failing(errA))
		synctest.Wait()
	}
	joinIt := func(t *testing.T, s *scope.Scope) { join(t, s) }
	type steps []func(*testing.T, *scope.Scope)
	tests := []struct {
		name  string
		do    steps
		want  scope.Reason
		cause error
	}{
		{"closed", steps{closeIt}, scope.ReasonClosed, errA},
		{"cancelled", steps{cancel}, scope.ReasonCancelled, errB},
		{"cancelled before closed", steps{closeIt, cancel}, scope.ReasonCancelled, errB},
		{"failed", steps{fail}, scope.ReasonFailed, errA},
		{"failed before cancelled and closed", steps{func(t *testing.T, s *scope.Scope) {
			mustGo(t, s, func(ctx context.Context) error { <-ctx.Done(); return errA })
			s.Close(nil)
			s.Cancel(errB)
			synctest.Wait()
		}}, scope.ReasonFailed, errB},
		{"joining", steps{joinIt}, scope.ReasonJoining, nil},
		{"joining before failed and closed", steps{fail, closeIt, joinIt}, scope.ReasonJoining, errA},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := scope.New(t.Context(), "root")
				for _, do := range tt.do {
					do(t, s)
				}
				_, childErr := s.Child("x")
				for what, err := range map[string]error{
					"goroutine": s.Go("x", func(context.Context) error { t.Error("ran"); return nil }),
					"child":     childErr,
					"finaliser": s.Finally(func(bool, scope.Status, error) error { t.Error("ran"); return nil }),
				} {
					rejected, ok := errors.AsType[*scope.AdmissionError](err)
					if !ok {
						t.Fatalf("%s: got %v", what, err)
					}
					if rejected.Reason != tt.want || rejected.What != what || tt.cause != nil && !errors.Is(err, tt.cause) {
						t.Errorf("%s: got %+v", what, rejected)
					}
				}
				join(t, s)
			})
		})
	}
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := scope.New(t.Context(), "root")
		child := mustChild(t, s, "child")
		mustGo(t, s, obedient)
		if !s.Close(errA) || s.Close(errB) {
			t.Error("close must report whether it was first")
		}
		mustGo(t, child, obedient) // only s is closed
		if s.Context().Err() != nil || s.Status() != scope.StatusRunning {
			t.Error("close must stop nothing")
		}
		s.Cancel(nil)
		join(t, s)
		if s.Close(nil) {
			t.Error("closed after the join")
		}
	})
}
