package op

// Bracket returns an op that holds a resource while it is performed. acquire runs
// when the performing starts, before any arm is probed; it must not block. use
// returns the op to wait for. release runs exactly once for each successful
// acquire: with aborted false if an arm of use's op has won, after that op's
// wraps and before wraps around the bracket, and with aborted true if it has
// lost, or if use panicked. If acquire fails, the bracket is ready with its
// error, and release isn't called.
func Bracket[R, T any](acquire func() (R, error), release func(r R, aborted bool), use func(R) Op[T]) Op[T] {
	return Op[T]{build: &bracket[R, T]{acquire: acquire, release: release, use: use}}
}

// Finally returns an op like o that calls do exactly once per performing: with
// aborted false after o's wraps if o has won, with aborted true if it has lost.
func Finally[T any](o Op[T], do func(aborted bool)) Op[T] {
	return Bracket(
		func() (struct{}, error) { return struct{}{}, nil },
		func(_ struct{}, aborted bool) { do(aborted) },
		func(struct{}) Op[T] { return o },
	)
}

type bracket[R, T any] struct {
	acquire func() (R, error)
	release func(R, bool)
	use     func(R) Op[T]
}

func (b *bracket[R, T]) build(s *session) node[T] {
	r, err := b.acquire()
	if err != nil {
		return Fail[T](err).expand(s)
	}
	// Deferred, so that a panic in use counts as a loss.
	defer s.onAbort(s.arms, func() { b.release(r, true) })
	return &held[T]{child: b.use(r).expand(s), release: func() { b.release(r, false) }}
}

// held is the op of a bracket whose resource has been acquired.
type held[T any] struct {
	child   node[T]
	release func()
}

func (h *held[T]) arms() int { return h.child.arms() }

func (h *held[T]) take(s *session, i int) (T, bool, error) {
	// Deferred, since a wrap may panic. If an arm has won by then it is one of
	// these: after a win no other arm is taken.
	defer func() {
		if s.won {
			h.release()
		}
	}()
	return h.child.take(s, i)
}

func (h *held[T]) block(s *session, i int) { h.child.block(s, i) }
