package rewrite

import "github.com/jobhost/jobhost/runtime/module"

// findRecursion assigns the functions that may call each other mutually the
// same component: the strongly connected components of the call graph, by
// Tarjan's algorithm. An indirect call may reach each function of its type that
// a reference is made to. It also marks the calls that ticks must follow.
func (s *survey) findRecursion() {
	g := s.callGraph()
	t := tarjan{graph: g, order: make([]int, g.size()), low: make([]int, g.size()), component: make([]int, g.size())}
	for n := range g.size() {
		if t.order[n] == 0 {
			t.search(n)
		}
	}
	for i := range s.functions {
		s.functions[i].component = t.component[i]
	}
	s.targets = t.component[len(s.functions):]
	p := placer{survey: s}
	p.markReturns(g, t.component)
}

// recursive reports whether a call of f may come back to f before it returns.
func (s *survey) recursive(f *function, e *event) bool {
	switch e.kind {
	case directCall:
		callee, ok := s.defined(e.arg)
		return ok && callee.component == f.component || s.isForeign(e.arg) // which may call back
	case indirectCall:
		t, ok := s.types[e.arg]
		return ok && s.targets[t] == f.component || s.linked // a reference may come from another module
	default:
		return false
	}
}

// callGraph says which functions may call which. Its nodes are the functions
// that the module defines, followed by the distinct types of functions, which
// stand for all functions of their type that a reference is made to.
type callGraph struct {
	s *survey
	// taken are the functions of each type that a reference is made to.
	taken [][]int
}

func (g *callGraph) size() int { return len(g.s.functions) + len(g.taken) }

// next returns a node that can be called from n, given an index among its
// calls, and the index to continue from; −1 = there are no more.
func (g *callGraph) next(n, place int) (callee, then int) {
	if n >= len(g.s.functions) {
		if taken := g.taken[n-len(g.s.functions)]; place < len(taken) {
			return taken[place], place + 1
		}
		return -1, place
	}
	imported := g.s.m.Imported[module.KindFunction]
	events := g.s.functions[n].events
	for ; place < len(events); place++ {
		e := &events[place]
		switch e.kind {
		case directCall:
			if i := int(e.arg) - imported; i >= 0 && i < len(g.s.functions) {
				return i, place + 1
			}
		case indirectCall:
			if t, ok := g.s.types[e.arg]; ok {
				return len(g.s.functions) + t, place + 1
			}
		default:
		}
	}
	return -1, place
}

// callGraph numbers the types of functions, equal ones alike, and finds the
// functions that references are made to.
func (s *survey) callGraph() *callGraph {
	s.types = make(map[uint32]int, len(s.m.Types))
	numbers := map[string]int{}
	for i, t := range s.m.Types {
		key := string(t.Params) + ">" + string(t.Results)
		if _, ok := numbers[key]; !ok {
			numbers[key] = len(numbers)
		}
		s.types[uint32(i)] = numbers[key]
	}
	g := &callGraph{s: s, taken: make([][]int, len(numbers))}
	seen := make([]bool, len(s.functions))
	for _, f := range s.referenced() {
		i := int(f) - s.m.Imported[module.KindFunction]
		if i < 0 || i >= len(seen) || seen[i] {
			continue
		}
		seen[i] = true
		t := s.types[s.m.Functions[i]]
		g.taken[t] = append(g.taken[t], i)
	}
	return g
}

// referenced returns the functions that references are made to, by their
// indices in the module.
func (s *survey) referenced() []uint32 {
	var all []uint32
	add := func(c module.Const) {
		if c.Op == byte(module.RefFunc) {
			all = append(all, uint32(c.Bits))
		}
	}
	for _, e := range s.m.Elements {
		all = append(all, e.Functions...)
		for _, c := range e.Exprs {
			add(c)
		}
	}
	for _, g := range s.m.Globals {
		add(g.Init)
	}
	for _, r := range s.references {
		all = append(all, r.to)
	}
	return all
}

// tarjan finds the strongly connected components of a call graph, without
// recursion of its own.
type tarjan struct {
	graph *callGraph
	// order is when a node was first seen, from 1; low is the earliest node
	// that it reaches among those without a component yet, which are waiting.
	order, low []int
	waiting    []int
	component  []int // from 1
	clock      int
	components int
}

func (t *tarjan) search(root int) {
	type frame struct{ node, place int }
	path := []frame{{node: root}}
	t.enter(root)
	for len(path) > 0 {
		top := &path[len(path)-1]
		callee, then := t.graph.next(top.node, top.place)
		top.place = then
		switch {
		case callee < 0:
			t.leave(top.node)
			if len(path) > 1 {
				caller := path[len(path)-2].node
				t.low[caller] = min(t.low[caller], t.low[top.node])
			}
			path = path[:len(path)-1]
		case t.order[callee] == 0:
			t.enter(callee)
			path = append(path, frame{node: callee})
		case t.component[callee] == 0:
			t.low[top.node] = min(t.low[top.node], t.order[callee])
		}
	}
}

func (t *tarjan) enter(n int) {
	t.clock++
	t.order[n], t.low[n] = t.clock, t.clock
	t.waiting = append(t.waiting, n)
}

// leave closes a component if n is its first node.
func (t *tarjan) leave(n int) {
	if t.low[n] != t.order[n] {
		return
	}
	t.components++
	for {
		last := t.waiting[len(t.waiting)-1]
		t.waiting = t.waiting[:len(t.waiting)-1]
		t.component[last] = t.components
		if last == n {
			return
		}
	}
}
