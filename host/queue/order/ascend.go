package order

import (
	"container/heap"
	"iter"
)

// ascent walks through a heap from the oldest entry on and leaves it as it is. Of a heap of any size the first k entries
// cost O(k log k).
type ascent[N any] struct {
	frontier frontier[N] // nodes whose parents have been passed
	entry    func(N) Entry
	below    func(N) []N // the children of a node
}

// frontier is a heap of nodes that may be next.
type frontier[N any] []step[N]

type step[N any] struct {
	node  N
	entry Entry
}

func (f frontier[N]) Len() int           { return len(f) }
func (f frontier[N]) Less(i, j int) bool { return older(f[i].entry, f[j].entry) }
func (f frontier[N]) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *frontier[N]) Push(s any)        { *f = append(*f, s.(step[N])) }
func (f *frontier[N]) Pop() any {
	last := len(*f) - 1
	s := (*f)[last]
	*f = (*f)[:last]
	return s
}

func (a *ascent[N]) add(nodes ...N) {
	for _, n := range nodes {
		heap.Push(&a.frontier, step[N]{n, a.entry(n)})
	}
}

// peek returns the next entry, unless the walk is over.
func (a *ascent[N]) peek() (Entry, bool) {
	if len(a.frontier) == 0 {
		return Entry{}, false
	}
	return a.frontier[0].entry, true
}

// next goes past the entry that peek returned.
func (a *ascent[N]) next() { a.add(a.below(heap.Pop(&a.frontier).(step[N]).node)...) }

// all yields what is left of the walk.
func (a *ascent[N]) all() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for e, ok := a.peek(); ok && yield(e); e, ok = a.peek() {
			a.next()
		}
	}
}

// ascend begins a walk through the heap, which must not change meanwhile.
func (h *entryHeap) ascend() *ascent[int] {
	a := &ascent[int]{entry: h.at, below: func(i int) []int {
		first := 2*i + 1
		return []int{first, first + 1}[:max(min(h.n-first, 2), 0)]
	}}
	if h.n > 0 {
		a.add(0)
	}
	return a
}

// ascend yields the entries of the level, the oldest first. The level must not change meanwhile.
func (v *level) ascend() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		late := v.late.ascend()
		for e := range v.fifo.all() {
			for l, ok := late.peek(); ok && older(l, e); l, ok = late.peek() {
				if !yield(l) {
					return
				}
				late.next()
			}
			if !yield(e) {
				return
			}
		}
		late.all()(yield)
	}
}

// ascend yields the tasks of a group in a level, the oldest first. They must not change meanwhile.
func (g *groups) ascend(r ref, level int) iter.Seq[Entry] {
	a := &ascent[ref]{entry: func(r ref) Entry { return g.node(r).Entry }, below: func(r ref) []ref {
		return present(g.node(r).left, g.node(r).right)
	}}
	a.add(present(g.at(r).roots[level])...)
	return a.all()
}

func present(nodes ...ref) []ref {
	n := 0
	for _, r := range nodes {
		if r != 0 {
			nodes[n] = r
			n++
		}
	}
	return nodes[:n]
}
