package order

import "iter"

// fifo holds the ready entries of one level, oldest first. It is a list of
// chunks rather than a ring, so that it never copies and gives memory back.
type fifo struct {
	head, tail  *chunk
	first, last int // next to pop in head, next to push in tail
	n           int
	viewed      bool // a view of the chunks may still be read
}

type chunk struct {
	entries [chunkLen]Entry
	next    *chunk
}

const chunkLen = 256

func (f *fifo) push(e Entry) {
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
func (f *fifo) peek() Entry { return f.head.entries[f.first] }

// newest returns the entry that was pushed last; it must not be called when the
// fifo is empty.
func (f *fifo) newest() Entry { return f.tail.entries[f.last-1] }

func (f *fifo) pop() Entry {
	e := f.head.entries[f.first]
	f.first++
	f.n--
	switch {
	case f.n == 0 && f.viewed:
		*f = fifo{}
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
func (f *fifo) all() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
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

// view returns the entries as they are now. It may be read while the fifo
// changes: an entry is never overwritten while a view may see it.
func (f *fifo) view() iter.Seq[Entry] {
	f.viewed = true
	now := *f
	return now.all()
}
