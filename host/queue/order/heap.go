package order

import (
	"iter"
	"slices"
)

// entryHeap holds entries and gives the oldest first. It lies in pages, so
// that a view of a million entries costs a copy of 4,000 pointers: a page that
// a view may see is copied before it is changed.
type entryHeap struct {
	pages []*heapPage
	n     int
	views int64 // that were taken
}

type heapPage struct {
	entries [pageLen]Entry
	views   int64 // that were taken before the page was made
}

const pageLen = 256

func (h *entryHeap) at(i int) Entry { return h.pages[i/pageLen].entries[i%pageLen] }

func (h *entryHeap) set(i int, e Entry) {
	page := &h.pages[i/pageLen]
	if (*page).views != h.views {
		own := **page
		own.views = h.views
		*page = &own
	}
	(*page).entries[i%pageLen] = e
}

func (h *entryHeap) push(e Entry) {
	i := h.n
	if h.n++; i/pageLen == len(h.pages) {
		h.pages = append(h.pages, &heapPage{views: h.views})
	}
	for i > 0 {
		parent := (i - 1) / 2
		p := h.at(parent)
		if !older(e, p) {
			break
		}
		h.set(i, p)
		i = parent
	}
	h.set(i, e)
}

// peek returns the oldest entry; it must not be called when the heap is empty.
func (h *entryHeap) peek() Entry { return h.at(0) }

// pop removes the oldest entry; it must not be called when the heap is empty.
func (h *entryHeap) pop() Entry {
	first := h.at(0)
	h.n--
	e := h.at(h.n) // sinks from the top to its place
	// One empty page is kept, for a heap whose length is about the end of a page.
	if keep := h.n/pageLen + 2; len(h.pages) > keep {
		h.pages[keep] = nil
		h.pages = h.pages[:keep]
	}
	for i := 0; ; {
		child := 2*i + 1
		if child >= h.n {
			h.set(i, e)
			return first
		}
		c := h.at(child)
		if child+1 < h.n {
			if right := h.at(child + 1); older(right, c) {
				child, c = child+1, right
			}
		}
		if !older(c, e) {
			h.set(i, e)
			return first
		}
		h.set(i, c)
		i = child
	}
}

// all yields the entries in no order.
func (h *entryHeap) all() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for i := range h.n {
			if !yield(h.at(i)) {
				return
			}
		}
	}
}

// view returns the entries as they are now, in no order. It may be read while
// the heap changes.
func (h *entryHeap) view() iter.Seq[Entry] {
	h.views++
	now := entryHeap{pages: slices.Clone(h.pages), n: h.n}
	return now.all()
}
