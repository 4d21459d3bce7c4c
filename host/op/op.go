package op

// Op describes something that may block and then results in a T or an error.
// It is immutable and safe for concurrent use. The zero Op is never ready.
type Op[T any] struct {
	// At most one of the two is set.
	node  node[T]    // ready to be probed as it is
	build builder[T] // has parts that are built for each performing
}

// node is an op with nothing left to build. Its arms are numbered from 0; a node
// with several children numbers their arms consecutively.
type node[T any] interface {
	// arms is the number of arms, the same in every call.
	arms() int
	// take commits arm i if that is possible now, or has just happened while s was
	// parked, and runs its wraps. It reports false if the arm isn't ready. s is
	// nil if the op has nothing to build and the performing hasn't waited yet.
	take(s *session, i int) (v T, ok bool, err error)
	// block registers arm i with what it waits for.
	block(s *session, i int)
}

// builder is an op with parts that depend on the performing.
type builder[T any] interface {
	// build creates the node for one performing. It counts the arms in s and
	// registers with s what to do for arms that lose.
	build(s *session) node[T]
}

// plain returns the node of an op without builder.
func (o Op[T]) plain() node[T] {
	if o.node == nil {
		return neverNode[T]{}
	}
	return o.node
}

// expand returns the node for one performing and counts its arms in s.
func (o Op[T]) expand(s *session) node[T] {
	if o.build != nil {
		return o.build.build(s)
	}
	n := o.plain()
	s.arms += n.arms()
	return n
}

// New returns a primitive op.
//
// try reports whether the op is ready, and if so commits to it: what it takes is
// taken. It is called only while nothing else of the same performing has
// committed. block is called if nothing was ready. It stores w where the condition
// is made true, or completes w itself if the op has become ready since try. Both
// run in the performing goroutine and must not block; see "Writing a primitive" in
// the package comment.
func New[T any](try func() (v T, ok bool, err error), block func(w *Waiter[T])) Op[T] {
	return Op[T]{node: &primitive[T]{try: try, blocked: block}}
}

type primitive[T any] struct {
	try     func() (T, bool, error)
	blocked func(*Waiter[T])
}

func (p *primitive[T]) arms() int { return 1 }

func (p *primitive[T]) take(s *session, _ int) (T, bool, error) {
	if w, ok := parkedAs[*Waiter[T]](s); ok {
		s.chosen()
		return w.value, true, w.err
	}
	v, ok, err := p.try()
	if !ok {
		var zero T
		return zero, false, nil
	}
	s.chosen()
	return v, true, err
}

func (p *primitive[T]) block(s *session, _ int) {
	w := &Waiter[T]{s: s, arm: s.arm}
	s.slots[s.arm] = w
	p.blocked(w)
}

// Always returns an op that is always ready with v.
func Always[T any](v T) Op[T] {
	return Op[T]{node: &constant[T]{value: v}}
}

// Fail returns an op that is always ready with err. In a choice it can win.
func Fail[T any](err error) Op[T] {
	return Op[T]{node: &constant[T]{err: err}}
}

type constant[T any] struct {
	value T
	err   error
}

func (c *constant[T]) arms() int { return 1 }

func (c *constant[T]) take(s *session, _ int) (T, bool, error) {
	s.chosen()
	return c.value, true, c.err
}

// block is never reached: the probe took the arm.
func (c *constant[T]) block(*session, int) {}

// Never returns an op that is never ready: a choice ignores it. Performed alone it
// waits for the end of the context.
func Never[T any]() Op[T] { return Op[T]{} }

type neverNode[T any] struct{}

func (neverNode[T]) arms() int { return 0 }

func (neverNode[T]) take(*session, int) (v T, ok bool, err error) { return v, false, nil }

func (neverNode[T]) block(*session, int) {}
