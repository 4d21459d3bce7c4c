package order

import (
	"iter"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// groups hold the ready tasks that have a group, and the order in which groups
// take turns. Each level of priority has a ring of the groups with a task that
// may run; a group whose turn it was goes to the end. All tasks without a group
// count as one group, at ref 0; they stay in the order's levels. An order has
// groups only while there are tasks with groups.
//
// Within a group the tasks of a level are a leftist heap: a tree whose oldest
// task is on top, and in which pushing and popping cost O(log n) at the worst.
// Its nodes are in pages that all groups share, so that a million groups of one
// task cost 100 bytes each, and a view costs a copy of the list of pages.
type groups struct {
	limit int // tasks of one concurrency key that may run at once; 0 = no limit

	refs      map[record.Group]ref
	pages     []*[pageLen]group // of groups; ref 0 is the group without a key
	free      []ref
	nodes     []*nodePage
	freeNode  ref // first of a chain by left
	nodeCount ref // that were ever used
	views     int64
	// busy are the groups with tasks that run; no more than there are slots.
	busy map[ref]struct{}
	held map[ref]bool // groups of which no task may run; nil = none
	left func(record.Group)

	rings [jobhost.Levels]ring
	// ready counts the tasks here that are not gone.
	ready [jobhost.Levels]int
	// oldest is the time since which the oldest task is ready whose group is in
	// the ring and not full. Where it is stale that task may be gone.
	oldest [jobhost.Levels]record.Millis
	stale  [jobhost.Levels]bool
}

// ref is the number of a group or a node; that of a node is never 0.
type ref uint32

// group is what is known of a concurrency key.
type group struct {
	id    record.Group
	roots [jobhost.Levels]ref    // of the heaps
	live  [jobhost.Levels]uint32 // tasks that are not gone
	// running counts the leases, those of cancelled attempts that go on included.
	running int32
	inRing  uint8 // a bit for each level
}

// node is a task in a heap; the nodes on each path to the right are few.
type node struct {
	Entry
	left, right ref
	group       ref
	rank        uint8 // nodes on the way to the right
}

type nodePage struct {
	nodes [pageLen]node
	views int64 // that were taken before the page was made
}

func newGroups(limit int, left func(record.Group)) *groups {
	g := &groups{limit: limit, left: left, refs: map[record.Group]ref{}, busy: map[ref]struct{}{}, pages: []*[pageLen]group{{}}, nodeCount: 1}
	for level := range g.oldest {
		g.oldest[level] = never
	}
	return g
}

func (g *groups) at(r ref) *group { return &g.pages[r/pageLen][r%pageLen] }

func (g *groups) node(r ref) *node { return &g.nodes[r/pageLen].nodes[r%pageLen] }

// change returns a node for writing. It copies the page if a view may see it.
func (g *groups) change(r ref) *node {
	page := &g.nodes[r/pageLen]
	if (*page).views != g.views {
		own := **page
		own.views = g.views
		*page = &own
	}
	return &(*page).nodes[r%pageLen]
}

// find returns the group, a new one if need be.
func (g *groups) find(id record.Group) ref {
	if r, ok := g.refs[id]; ok {
		return r
	}
	var r ref
	if n := len(g.free); n > 0 {
		r, g.free = g.free[n-1], g.free[:n-1]
	} else {
		r = ref(len(g.refs)) + 1 // nothing is free, so all numbers are taken
		if int(r/pageLen) == len(g.pages) {
			g.pages = append(g.pages, &[pageLen]group{})
		}
	}
	*g.at(r) = group{id: id}
	g.refs[id] = r
	return r
}

// drop forgets a group without waiting and running tasks. If it is still in a
// ring it is dropped when its turn comes.
func (g *groups) drop(r ref) {
	if gr := g.at(r); r != 0 && gr.running == 0 && gr.inRing == 0 && gr.roots == [jobhost.Levels]ref{} {
		delete(g.refs, gr.id)
		g.free = append(g.free, r)
		delete(g.held, r)
		g.left(gr.id)
	}
}

// push adds a ready task to its group.
func (g *groups) push(e Entry, id record.Group) ref {
	r := g.find(id)
	n := g.newNode(e, r)
	gr := g.at(r)
	gr.roots[e.Level] = g.merge(gr.roots[e.Level], n)
	gr.live[e.Level]++
	g.ready[e.Level]++
	return r
}

func (g *groups) newNode(e Entry, of ref) ref {
	r := g.freeNode
	if r != 0 {
		g.freeNode = g.node(r).left
	} else {
		r = g.nodeCount
		g.nodeCount++
		if int(r/pageLen) == len(g.nodes) {
			g.nodes = append(g.nodes, &nodePage{views: g.views})
		}
	}
	*g.change(r) = node{Entry: e, group: of, rank: 1}
	return r
}

// merge makes one heap of two, and returns its root.
func (g *groups) merge(a, b ref) ref {
	if a == 0 || b == 0 {
		return a | b
	}
	if older(g.node(b).Entry, g.node(a).Entry) {
		a, b = b, a
	}
	right := g.merge(g.node(a).right, b)
	n := g.change(a)
	n.right = right
	if g.rank(n.left) < g.rank(n.right) {
		n.left, n.right = n.right, n.left
	}
	n.rank = g.rank(n.right) + 1
	return a
}

func (g *groups) rank(r ref) uint8 {
	if r == 0 {
		return 0
	}
	return g.node(r).rank
}

// pop removes the oldest task of a group at a level, gone or not. There must be one.
func (g *groups) pop(r ref, level int) Entry {
	gr := g.at(r)
	top := gr.roots[level]
	n := g.node(top)
	e := n.Entry
	gr.roots[level] = g.merge(n.left, n.right)
	*g.change(top) = node{left: g.freeNode} // a key of 0 says that it is free
	g.freeNode = top
	return e
}

// run counts n tasks of a group that begin to run; a negative n, that end.
func (g *groups) run(r ref, n int32) {
	gr := g.at(r)
	if gr.running += n; gr.running > 0 {
		g.busy[r] = struct{}{}
	} else {
		delete(g.busy, r)
	}
}

// hold keeps the tasks of a group from running until it is removed from held.
func (g *groups) hold(r ref) {
	if g.held == nil {
		g.held = map[ref]bool{}
	}
	g.held[r] = true
	g.staleAll()
}

// full reports whether a group must wait: for the end of one of its tasks, or
// because it is held.
func (g *groups) full(r ref) bool {
	if r == 0 {
		return false
	}
	gr := g.at(r)
	limit := gr.id.Limit(g.limit)
	return limit > 0 && int(gr.running) >= limit || g.held[r]
}

// allFull returns the groups that are full.
func (g *groups) allFull() map[ref]bool {
	full := map[ref]bool{}
	for r := range g.busy {
		if g.full(r) {
			full[r] = true
		}
	}
	for r := range g.held {
		full[r] = true
	}
	return full
}

// staleAll makes refresh find the oldest tasks again.
func (g *groups) staleAll() { g.stale = [jobhost.Levels]bool{true, true, true, true, true} }

// all yields the tasks with the groups that they are in, gone ones included.
func (g *groups) all() iter.Seq2[Entry, ref] {
	return func(yield func(Entry, ref) bool) {
		for _, page := range g.nodes {
			for i := range page.nodes {
				if n := &page.nodes[i]; n.Key != 0 && !yield(n.Entry, n.group) {
					return
				}
			}
		}
	}
}

// view returns the tasks of some groups as they are now. It may be read while
// the groups change.
func (g *groups) view(of func(ref) bool) iter.Seq[Entry] {
	g.views++
	now := groups{nodes: slices.Clone(g.nodes)}
	return func(yield func(Entry) bool) {
		for e, r := range now.all() {
			if of(r) && !yield(e) {
				return
			}
		}
	}
}
