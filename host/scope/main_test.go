package scope_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/jobhost/jobhost/host/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errA = errors.New("a")
	errB = errors.New("b")
)

// bubble runs f in a synctest bubble, which fails if f leaves a goroutine
// blocked forever.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// join joins s and returns its report.
func join(t *testing.T, s *scope.Scope) scope.Report {
	t.Helper()
	r, err := s.Join(context.Background())
	if err != nil {
		t.Fatalf("join: %v", err)
	}
	return r
}

func mustGo(t *testing.T, s *scope.Scope, f func(ctx context.Context) error) {
	t.Helper()
	if err := s.Go("", f); err != nil {
		t.Fatal(err)
	}
}

func mustChild(t *testing.T, s *scope.Scope, name string, opts ...scope.ChildOption) *scope.Scope {
	t.Helper()
	child, err := s.Child(name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return child
}

func mustFinally(t *testing.T, s *scope.Scope, f scope.Finaliser) {
	t.Helper()
	if err := s.Finally(f); err != nil {
		t.Fatal(err)
	}
}

// failing is a goroutine that fails at once, and obedient one that ends with its
// context.
func failing(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

func obedient(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
