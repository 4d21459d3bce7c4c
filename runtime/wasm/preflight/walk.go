package preflight

import (
	"math"

	"github.com/jobhost/jobhost/runtime/module"
)

// place is a position in a function in terms of the compiler: basic blocks,
// each of which has a dominator, the last block that every path to it goes
// through.
type place struct {
	depth int // in the tree of dominators
	chain int // basic blocks since control flow last merged
	known int // addresses that are known to be in memory, at most
	loops int // that are open
}

// frame is an open block, loop or if.
type frame struct {
	op              uint32 // module.Else in the second arm of an if
	params, results int
	height          int  // of the operand stack below the parameters
	dead            bool // it is unreachable, so nothing of it is compiled
	entry           place
	sets, loops     int // in the function before the frame

	// edges are the branches to its label, including the paths that reach its
	// end; arm those of the first arm of an if.
	edges, arm int
	// exit combines the places of all of them.
	exit place
}

// merge is a place where control flow merges.
type merge struct {
	edges, arity int
	sets         int  // of locals on the paths to it
	loop         bool // it is a loop, or there is one on the paths to it
}

// walker goes through functions, one after the other, and counts their cost. It
// trusts the code: types and indices are the compiler's job, so what it counts
// in invalid code means nothing.
type walker struct {
	m         *module.Module
	functions []uint32 // the types of all functions, imported ones first
	mutable   int      // globals

	at          place
	height      int // of the operand stack
	dead        bool
	frames      []frame
	sets, loops int
	deepest     int // nesting depth of the innermost loop

	// setIn is the basic block where a local was last set. Locals used in
	// another block are crossing.
	setIn    []int32
	crossing int
	merges   []merge

	cost        cost
	importCalls int
}

// crossed marks a local that is used outside the block that sets it.
const crossed = -1

func newWalker(m *module.Module) *walker {
	w := &walker{m: m}
	for _, i := range m.Imports {
		switch {
		case i.Kind == module.KindFunction:
			w.functions = append(w.functions, i.Type)
		case i.Kind == module.KindGlobal && i.Global.Mutable:
			w.mutable++
		}
	}
	w.functions = append(w.functions, m.Functions...)
	for i := range m.Globals {
		if m.Globals[i].Mutable {
			w.mutable++
		}
	}
	return w
}

// start prepares the walker for a function.
func (w *walker) start(function int) {
	t := w.m.Types[w.m.Functions[function]]
	n := len(t.Params) + w.m.Bodies[function].Locals
	if n > cap(w.setIn) {
		w.setIn = make([]int32, n)
	}
	w.setIn = w.setIn[:n]
	clear(w.setIn) // set in block 0, as parameters or to zero
	w.at, w.height, w.dead = place{}, 0, false
	w.sets, w.loops, w.deepest, w.crossing = 0, 0, 0, 0
	w.merges = w.merges[:0]
	w.cost = cost{}
	w.frames = append(w.frames[:0], frame{op: module.Block, results: len(t.Results), exit: unreached})
}

// unreached is the exit of a frame before anything branches to it.
var unreached = place{depth: math.MaxInt, known: math.MaxInt}

// finish adds what depends on the whole function.
func (w *walker) finish() {
	for _, m := range w.merges {
		n := m.sets
		if m.loop {
			n = w.crossing
		}
		n = min(n, w.crossing) + m.arity
		w.cost.arguments += n * m.edges
		w.cost.squares += n * n * (m.edges - 1)
	}
	// That a value doesn't change in a loop is recognized for the enclosing
	// loop only after another pass over everything.
	w.cost.squares = min(w.cost.squares, maxUnits) * max(w.deepest, 1)
	w.cost.merges = len(w.merges)
	w.importCalls += w.cost.importCalls
}

// next begins a basic block whose only predecessor is the current one.
func (w *walker) next() {
	w.at.depth++
	w.at.chain++
	w.block()
}

// block counts a basic block that begins here, and the path to it.
func (w *walker) block() {
	c := &w.cost
	c.blocks++
	c.depth += 2 * w.at.depth
	c.known += w.at.known
	c.operands += w.height
	c.nesting += w.at.loops
}

// open enters a block.
func (w *walker) open(op uint32, b module.BlockType) {
	if op == module.If {
		w.pop(1)
	}
	f := frame{op: op, dead: w.dead, sets: w.sets, loops: w.loops, exit: unreached}
	f.params, f.results = w.blockType(b)
	f.height = max(w.height-f.params, 0)
	if w.dead {
		w.frames = append(w.frames, f)
		return
	}
	w.cost.values += f.params + f.results
	f.entry = w.at
	switch op {
	case module.Loop:
		w.loops++
		w.at.loops++
		w.deepest = max(w.deepest, w.at.loops)
		f.edges = 1
		w.next()
		w.at.chain = 0
	case module.If:
		w.next()
	}
	w.frames = append(w.frames, f)
}

func (w *walker) blockType(b module.BlockType) (params, results int) {
	switch {
	case b.Index >= 0 && b.Index < len(w.m.Types):
		return len(w.m.Types[b.Index].Params), len(w.m.Types[b.Index].Results)
	case b.Index < 0 && b.Value != 0:
		return 0, 1
	}
	return 0, 0
}

// branch counts a branch to a label.
func (w *walker) branch(depth uint64) {
	if depth >= uint64(len(w.frames)) {
		return
	}
	f := &w.frames[len(w.frames)-1-int(depth)]
	w.cost.depth += w.at.depth
	if f.op == module.Loop {
		f.edges++
		w.cost.values += f.params
		return
	}
	w.cost.values += f.results
	w.leave(f)
}

// leave records that the end of a frame can be reached from here.
func (w *walker) leave(f *frame) {
	f.edges++
	f.exit.depth = min(f.exit.depth, w.at.depth)
	f.exit.known = min(f.exit.known, w.at.known)
	f.exit.chain = max(f.exit.chain, w.at.chain)
}

// otherwise goes from the first arm of an if to the second.
func (w *walker) otherwise() {
	f := &w.frames[len(w.frames)-1]
	if f.dead || f.op != module.If {
		return
	}
	if !w.dead {
		w.leave(f)
	}
	f.op, f.arm = module.Else, f.edges
	w.at, w.dead = f.entry, false
	w.height = f.height + f.params
	w.next()
}

// close leaves a block. The function itself is never left, so that there is a
// frame even in damaged code.
func (w *walker) close() {
	last := len(w.frames) - 1
	if last == 0 {
		return
	}
	if f := &w.frames[last]; f.op == module.If {
		w.otherwise()
	}
	f := w.frames[last]
	w.frames = w.frames[:last]
	if f.dead {
		return
	}
	if f.op == module.Loop {
		w.merges = append(w.merges, merge{edges: f.edges, arity: f.params, loop: true})
		w.at.loops = f.entry.loops
		if !w.dead {
			w.next()
		}
		return
	}
	if !w.dead {
		w.leave(&f)
	}
	if w.dead = f.edges == 0; w.dead {
		return
	}
	if f.op == module.Else && f.arm > 0 && f.edges > f.arm {
		f.exit.depth = f.entry.depth // nothing in an arm dominates what follows both
	}
	w.height = f.height
	w.push(f.results)
	w.at = place{depth: f.exit.depth, known: f.exit.known, chain: f.exit.chain, loops: f.entry.loops}
	w.next()
	if f.edges > 1 {
		w.at.chain = 0
		w.merges = append(w.merges, merge{edges: f.edges, arity: f.results, sets: w.sets - f.sets, loop: w.loops > f.loops})
	}
}
