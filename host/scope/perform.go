package scope

import (
	"context"

	"github.com/jobhost/jobhost/host/op"
)

// Perform performs o under ctx and for the scope that ctx belongs to. It returns a
// result only if the scope was neither cancelled nor failed when o committed.
// Otherwise the result is discarded, although its effect has happened, and the
// error is a [*Cancelled] whose reason is the scope's, or its primary error. If
// ctx itself has ended, by a timeout for instance, the error is its cause. Without
// a scope it is [op.Perform].
func Perform[T any](ctx context.Context, o op.Op[T]) (T, error) {
	v, err := op.Perform(ctx, o)
	if s := From(ctx); s != nil {
		if c := s.stopped(); c != nil {
			var zero T
			return zero, c
		}
	}
	return v, err
}

// Attempt is the result of an op performed for a scope: look at the Status first.
type Attempt[T any] struct {
	Status Status // StatusOK if the scope wasn't stopped, otherwise StatusFailed or StatusCancelled
	Value  T      // of the op, if the status is StatusOK
	Reason error  // the scope's primary error or its [*Cancelled], if the status isn't StatusOK
}

// TryOp returns an op that is ready when o is, or when s is cancelled, fails, or
// has ended. If both happen, the latter counts, and o's result is discarded,
// though its effect may have happened. An error of o is the error of the op, with
// StatusOK.
func TryOp[T any](s *Scope, o op.Op[T]) op.Op[Attempt[T]] {
	verdict := func(v T, err error) (Attempt[T], error) {
		if status, reason := s.verdict(); status != StatusOK {
			return Attempt[T]{Status: status, Reason: reason}, nil
		}
		return Attempt[T]{Status: StatusOK, Value: v}, err
	}
	stopped := op.Done[T](&s.ctx)
	return op.WrapResult(op.Guard(func() op.Op[T] {
		if s.ctx.Err() != nil {
			return stopped // don't begin what would be discarded
		}
		return op.Choice(o, stopped)
	}), verdict)
}

// verdict returns the status that an op performed for s results in.
func (s *Scope) verdict() (Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.primary != nil:
		return StatusFailed, s.primary
	case s.cancelled != nil:
		return StatusCancelled, s.cancelled
	case s.ended:
		return StatusCancelled, ended
	default:
		return StatusOK, nil
	}
}
