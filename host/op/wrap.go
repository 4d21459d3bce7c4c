package op

// Wrap returns an op that is ready when o is, with the result of f applied to
// o's result. An error of o is passed on without calling f. f runs in the
// performing goroutine after the arm has committed, so it may block, and only
// if o has won.
func Wrap[A, B any](o Op[A], f func(A) (B, error)) Op[B] {
	return WrapResult(o, func(a A, err error) (B, error) {
		if err != nil {
			var zero B
			return zero, err
		}
		return f(a)
	})
}

// WrapResult is Wrap for an f that also handles errors.
func WrapResult[A, B any](o Op[A], f func(A, error) (B, error)) Op[B] {
	if o.build != nil {
		return Op[B]{build: &wrapBuilder[A, B]{child: o.build, f: f}}
	}
	return Op[B]{node: &wrapNode[A, B]{child: o.plain(), f: f}}
}

type wrapNode[A, B any] struct {
	child node[A]
	f     func(A, error) (B, error)
}

func (n *wrapNode[A, B]) arms() int { return n.child.arms() }

func (n *wrapNode[A, B]) take(s *session, i int) (b B, ok bool, err error) {
	a, ok, err := n.child.take(s, i)
	if !ok {
		return b, false, nil
	}
	b, err = n.f(a, err)
	return b, true, err
}

func (n *wrapNode[A, B]) block(s *session, i int) { n.child.block(s, i) }

type wrapBuilder[A, B any] struct {
	child builder[A]
	f     func(A, error) (B, error)
}

func (b *wrapBuilder[A, B]) build(s *session) node[B] {
	return &wrapNode[A, B]{child: b.child.build(s), f: b.f}
}
