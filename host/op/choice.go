package op

import (
	"maps"
	"slices"
)

// Choice returns an op that is ready when one of ops is, with that op's result.
// If several are ready, each has a fair chance. A choice of choices is as fair as
// one flat choice of all their arms. A choice of nothing is [Never].
func Choice[T any](ops ...Op[T]) Op[T] {
	if len(ops) == 1 {
		return ops[0]
	}
	for _, o := range ops {
		if o.build != nil {
			return Op[T]{build: choiceBuilder[T](slices.Clone(ops))}
		}
	}
	kids := make([]node[T], 0, len(ops))
	for _, o := range ops {
		if inner, ok := o.node.(*choiceNode[T]); ok {
			kids = append(kids, inner.kids...)
		} else if o.node != nil {
			kids = append(kids, o.node)
		}
	}
	return Op[T]{node: newChoiceNode(kids)}
}

// choiceNode is a choice with nothing left to build.
type choiceNode[T any] struct {
	kids []node[T]
	ends []int // the number after each kid's last arm; nil = each has one arm
	n    int
}

func newChoiceNode[T any](kids []node[T]) *choiceNode[T] {
	c := &choiceNode[T]{kids: kids}
	single := true
	for _, kid := range kids {
		n := kid.arms()
		c.n += n
		single = single && n == 1
	}
	if single {
		return c
	}
	c.ends = make([]int, len(kids))
	end := 0
	for i, kid := range kids {
		end += kid.arms()
		c.ends[i] = end
	}
	return c
}

func (c *choiceNode[T]) arms() int { return c.n }

func (c *choiceNode[T]) take(s *session, i int) (T, bool, error) {
	kid, i := c.kid(i)
	return kid.take(s, i)
}

func (c *choiceNode[T]) block(s *session, i int) {
	kid, i := c.kid(i)
	kid.block(s, i)
}

// kid returns the child that has arm i, and the arm's number there.
func (c *choiceNode[T]) kid(i int) (node[T], int) {
	if c.ends == nil {
		return c.kids[i], 0
	}
	k, _ := slices.BinarySearch(c.ends, i+1)
	if k > 0 {
		i -= c.ends[k-1]
	}
	return c.kids[k], i
}

type choiceBuilder[T any] []Op[T]

func (b choiceBuilder[T]) build(s *session) node[T] {
	kids := make([]node[T], len(b))
	for i, o := range b {
		kids[i] = o.expand(s)
	}
	return newChoiceNode(kids)
}

// Tagged is the result of a choice together with the arm it came from.
type Tagged[K comparable, T any] struct {
	Tag   K
	Value T
}

// tag marks o's result, even if the result is an error.
func tag[K comparable, T any](k K, o Op[T]) Op[Tagged[K, T]] {
	return WrapResult(o, func(v T, err error) (Tagged[K, T], error) {
		return Tagged[K, T]{Tag: k, Value: v}, err
	})
}

// NamedChoice is a [Choice] whose result has the winner's name, even if the
// winner's result is an error.
func NamedChoice[T any](ops map[string]Op[T]) Op[Tagged[string, T]] {
	named := make([]Op[Tagged[string, T]], 0, len(ops))
	for _, name := range slices.Sorted(maps.Keys(ops)) { // so that aborts have a defined order
		named = append(named, tag(name, ops[name]))
	}
	return Choice(named...)
}

// BooleanChoice is a [Choice] of two whose result has true if yes won and false
// if no did, even if the result is an error.
func BooleanChoice[T any](yes, no Op[T]) Op[Tagged[bool, T]] {
	return Choice(tag(true, yes), tag(false, no))
}

// FirstReady is a [Choice] whose result has the winner's index in ops, even if
// the winner's result is an error.
func FirstReady[T any](ops ...Op[T]) Op[Tagged[int, T]] {
	tagged := make([]Op[Tagged[int, T]], len(ops))
	for i, o := range ops {
		tagged[i] = tag(i, o)
	}
	return Choice(tagged...)
}

// Race is a [Choice] that passes the winner's index and result to onWin.
func Race[T, R any](onWin func(index int, v T, err error) (R, error), ops ...Op[T]) Op[R] {
	runners := make([]Op[R], len(ops))
	for i, o := range ops {
		runners[i] = WrapResult(o, func(v T, err error) (R, error) { return onWin(i, v, err) })
	}
	return Choice(runners...)
}
