package queue

import "iter"

// entry is a task that waits, as small as it can be: a million of them are
// held in memory. Everything else is read from the store when its turn is near.
type entry struct {
	key     Key
	readyAt Millis
	token   int32
	index   int16 // of the task in its job; key - index is the job
	level   int8
	tried   bool // an attempt was made that counts
}

func (e entry) job() Key { return e.key - Key(e.index) }

// fifo holds the ready entries of one level, oldest first. It is a list of
// chunks rather than a ring, so that it never copies and gives memory back.
type fifo struct {
	head, tail  *chunk
	first, last int // next to pop in head, next to push in tail
	n           int
}

type chunk struct {
	entries [chunkLen]entry
	next    *chunk
}

const chunkLen = 256

func (f *fifo) push(e entry) {
	switch {
	case f.tail == nil:
		f.head = &chunk{}
		f.tail = f.head
	case f.last == chunkLen:
		f.tail.next = &chunk{}
		f.tail = f.tail.next
		f.last = 0
	}
	f.tail.entries[f.last] = e
	f.last++
	f.n++
}

// peek returns the oldest entry; it must not be called when the fifo is empty.
func (f *fifo) peek() entry { return f.head.entries[f.first] }

func (f *fifo) pop() entry {
	e := f.head.entries[f.first]
	f.first++
	f.n--
	switch {
	case f.n == 0:
		// The last chunk is kept: a queue that is mostly empty allocates nothing.
		f.head.next = nil
		f.tail, f.first, f.last = f.head, 0, 0
	case f.first == chunkLen:
		f.head, f.first = f.head.next, 0
	}
	return e
}

// all yields the entries, oldest first.
func (f *fifo) all() iter.Seq[entry] {
	return func(yield func(entry) bool) {
		c, i := f.head, f.first
		for range f.n {
			if i == chunkLen {
				c, i = c.next, 0
			}
			if !yield(c.entries[i]) {
				return
			}
			i++
		}
	}
}

// delayHeap holds the entries whose time has not come, the next one first.
type delayHeap []entry

func (h delayHeap) before(i, j int) bool {
	if h[i].readyAt != h[j].readyAt {
		return h[i].readyAt < h[j].readyAt
	}
	return h[i].key < h[j].key
}

func (h *delayHeap) push(e entry) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.before(i, parent) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

// pop removes the first entry; it must not be called when the heap is empty.
func (h *delayHeap) pop() entry {
	s := *h
	first := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && s.before(child+1, child) {
			child++
		}
		if !s.before(child, i) {
			return first
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
