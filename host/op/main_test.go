package op_test

import (
	"context"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/jobhost/jobhost/host/op"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what a performing returned.
type result[T any] struct {
	value T
	err   error
}

// background performs o in its own goroutine. Within a synctest bubble,
// synctest.Wait then returns when it is blocked or has ended.
func background[T any](ctx context.Context, o op.Op[T]) <-chan result[T] {
	out := make(chan result[T], 1)
	go func() {
		v, err := op.Perform(ctx, o)
		out <- result[T]{v, err}
	}()
	return out
}

// bubble runs f in a synctest bubble.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// take returns the result of a performing that must have ended.
func take[T any](t *testing.T, out <-chan result[T]) result[T] {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-out:
		return r
	default:
		t.Fatal("still performing")
		panic("unreachable")
	}
}

// mustBlock fails if the performing has ended.
func mustBlock[T any](t *testing.T, out <-chan result[T]) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-out:
		t.Fatalf("performed: %v, %v; want blocked", r.value, r.err)
	default:
	}
}

func mustPerform[T any](t *testing.T, o op.Op[T]) T {
	t.Helper()
	v, err := op.Perform(t.Context(), o)
	if err != nil {
		t.Fatalf("perform: %v", err)
	}
	return v
}

// mustBeEmpty fails if anyone is queued at the channel.
func mustBeEmpty[T any](t *testing.T, c *op.Chan[T]) {
	t.Helper()
	if s, r := c.Waiting(); s != 0 || r != 0 {
		t.Errorf("%d senders and %d receivers are still queued", s, r)
	}
}
