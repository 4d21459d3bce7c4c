package op

import (
	"context"
	"math/rand/v2"
)

// Perform waits until one arm of o has committed and returns its result.
//
// If ctx ends first, every arm loses: registrations are withdrawn, all abort
// conditions fire, and the error is [context.Cause] of ctx. If ctx has already
// ended, that error is returned immediately and nothing of o is built. If an arm
// commits while ctx ends, the commit stands and its result is returned.
func Perform[T any](ctx context.Context, o Op[T]) (T, error) {
	if ctx.Err() != nil {
		var zero T
		return zero, context.Cause(ctx)
	}
	return perform(ctx, o)
}

// PerformRaw is Perform without a context: only o itself ends the wait. It is
// for cleaning up, which must not be interrupted by the cancellation that caused
// it.
func PerformRaw[T any](o Op[T]) (T, error) {
	return perform(context.Background(), o)
}

// TryPerform performs o if that is possible without waiting. Otherwise it
// reports false: all arms have lost, and all abort conditions have fired.
func TryPerform[T any](o Op[T]) (v T, ok bool, err error) {
	if o.build == nil {
		return probe(o.plain(), nil)
	}
	s := newSession()
	defer s.abort()
	return probe(o.build.build(s), s)
}

func perform[T any](ctx context.Context, o Op[T]) (T, error) {
	if o.build != nil {
		return performBuilt(ctx, o.build)
	}
	n := o.plain()
	if v, ok, err := probe(n, nil); ok {
		return v, err
	}
	return await(ctx, n, newSession())
}

func performBuilt[T any](ctx context.Context, b builder[T]) (T, error) {
	s := newSession()
	defer s.abort() // conditions that haven't fired: all, if no arm committed
	n := b.build(s)
	if v, ok, err := probe(n, s); ok {
		return v, err
	}
	return await(ctx, n, s)
}

// probe takes the first arm that is ready. Start and direction are random, so
// that two arms which are always ready win equally often whatever stands between
// them, and no arm can starve another. Fallbacks come last.
func probe[T any](n node[T], s *session) (v T, ok bool, err error) {
	arms := n.arms()
	if arms == 1 {
		s.at(0)
		v, ok, err = n.take(s, 0)
	} else if arms > 1 {
		start, step := rand.IntN(2*arms), 1
		if start >= arms {
			start, step = start-arms, arms-1
		}
		for k, i := 0, start; k < arms && !ok; k, i = k+1, (i+step)%arms {
			s.at(i)
			v, ok, err = n.take(s, i)
		}
	}
	if !ok && s != nil && len(s.fallbacks) > 0 {
		s.lastResort = true
		i := s.fallbacks[rand.IntN(len(s.fallbacks))]
		s.at(i)
		v, ok, err = n.take(s, i)
	}
	return v, ok, err
}

// await registers all arms and sleeps until one has committed or ctx has ended.
func await[T any](ctx context.Context, n node[T], s *session) (v T, err error) {
	arms := n.arms()
	s.park(arms)
	defer s.leave() // in case block panics
	for i := range arms {
		s.at(i)
		n.block(s, i)
		if i+1 < arms && s.decided() {
			break
		}
	}
	won := s.wait(ctx.Done())
	s.withdraw()
	if !won {
		return v, context.Cause(ctx)
	}
	s.at(s.winner)
	v, _, err = n.take(s, s.winner)
	return v, err
}
