package order

import "iter"

// level holds the ready entries of one priority, the oldest first. Nearly all
// come in that order and go into a fifo, which is cheap. The few that are older
// than the newest one (put back, or committed in another order than they were
// admitted) go into a heap.
type level struct {
	fifo fifo
	late entryHeap
}

func (v *level) len() int { return v.fifo.n + v.late.n }

func (v *level) push(e Entry) {
	if v.fifo.n > 0 && older(e, v.fifo.newest()) {
		v.late.push(e)
		return
	}
	v.fifo.push(e)
}

// lateFirst reports whether the oldest entry is in the heap.
func (v *level) lateFirst() bool {
	return v.late.n > 0 && (v.fifo.n == 0 || older(v.late.peek(), v.fifo.peek()))
}

// peek returns the oldest entry; it must not be called when the level is empty.
func (v *level) peek() Entry {
	if v.lateFirst() {
		return v.late.peek()
	}
	return v.fifo.peek()
}

// pop removes the oldest entry; it must not be called when the level is empty.
func (v *level) pop() Entry {
	if v.lateFirst() {
		return v.late.pop()
	}
	return v.fifo.pop()
}

// all yields the entries in no order.
func (v *level) all() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for e := range v.late.all() {
			if !yield(e) {
				return
			}
		}
		v.fifo.all()(yield)
	}
}

// views returns the entries as they are now; see [fifo.view].
func (v *level) views() []iter.Seq[Entry] {
	return []iter.Seq[Entry]{v.late.view(), v.fifo.view()}
}
