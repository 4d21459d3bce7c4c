package op

// Guard returns an op that f creates each time it is performed, before any arm is
// probed. f is for actions that depend on the moment, such as sending a request
// before waiting for its answer; it must not block.
func Guard[T any](f func() Op[T]) Op[T] {
	return Op[T]{build: guard[T](f)}
}

type guard[T any] func() Op[T]

func (g guard[T]) build(s *session) node[T] { return g().expand(s) }

// WithNack is a [Guard] whose function gets a negative acknowledgement: an op that
// becomes ready, and stays so, as soon as it is certain that no arm of the
// returned op wins this performing. If one of them wins, it never becomes ready.
// It is usually passed to another goroutine, a server that holds something ready
// for this one.
func WithNack[T any](f func(nack Op[struct{}]) Op[T]) Op[T] {
	return Op[T]{build: withNack[T](f)}
}

type withNack[T any] func(Op[struct{}]) Op[T]

func (f withNack[T]) build(s *session) node[T] {
	nack := new(Signal)
	defer s.onAbort(s.arms, func() { nack.Fire() })
	return f(nack.Wait()).expand(s)
}

// OnAbort returns an op like o that calls do whenever o has been performed without
// one of its arms winning: another arm of the choice won, the context ended, or
// [TryPerform] found nothing ready. do runs once per performing, in the performing
// goroutine, after all registrations are withdrawn and before the winner's wraps;
// the performing returns only after do. Conditions fire inner before outer, and
// adjacent ones in the order of their arms.
func OnAbort[T any](o Op[T], do func()) Op[T] {
	return Op[T]{build: &onAbort[T]{child: o, do: do}}
}

type onAbort[T any] struct {
	child Op[T]
	do    func()
}

func (a *onAbort[T]) build(s *session) node[T] {
	// Deferred, so that a panic while building the child counts as a loss.
	defer s.onAbort(s.arms, a.do)
	return a.child.expand(s)
}

// OrElse returns an op that never waits: if o isn't ready, it is ready with the
// result of otherwise. In a [Choice] the fallback comes after all other arms of
// that choice, like default in a select. otherwise runs like a wrap.
func OrElse[T any](o Op[T], otherwise func() (T, error)) Op[T] {
	return Op[T]{build: &orElse[T]{child: o, otherwise: otherwise}}
}

type orElse[T any] struct {
	child     Op[T]
	otherwise func() (T, error)
}

func (e *orElse[T]) build(s *session) node[T] {
	n := e.child.expand(s)
	s.fallbacks = append(s.fallbacks, s.arms)
	s.arms++
	return newChoiceNode([]node[T]{n, fallback[T](e.otherwise)})
}

// fallback is an arm that is ready if nothing else was.
type fallback[T any] func() (T, error)

func (f fallback[T]) arms() int { return 1 }

func (f fallback[T]) take(s *session, _ int) (v T, ok bool, err error) {
	if !s.lastResort {
		return v, false, nil
	}
	s.chosen()
	v, err = f()
	return v, true, err
}

// block is never reached: the probe took the arm.
func (f fallback[T]) block(*session, int) {}
