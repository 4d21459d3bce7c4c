package rewrite

import "github.com/jobhost/jobhost/runtime/module"

// paths finds the cost of the most expensive path through a function, and of
// the most expensive pass through each of its loops. Go's compiler turns each
// function into a loop and each part of it into a branch, so the total cost of
// the code in a loop can be a hundred times that of a pass.
type paths struct {
	*placer
	events []event // that are still to come
	// levels are the open loops, the function itself being the first: the cost
	// so far of the most expensive path in each, excluding inner loops.
	levels  []level
	frames  []way
	reached bool
	loops   int // seen so far
}

// level is an open loop, by its index in the function's charges, or the
// function.
type level struct {
	loop int
	cost work
}

// way is an open block.
type way struct {
	level   int // of the enclosing code, or for a loop of itself
	loop    bool
	dead    bool // it is unreachable
	arm     bool // an if without an else so far
	before  work // the cost up to its start
	arity   int  // of branches to its label
	left    bool // some branch leads to its end
	leaving work // the most expensive of them
}

// find sets the placer's charges and returns the cost outside loops.
func (p *placer) find(i int) (whole work, err error) {
	p.charges = p.charges[:0]
	w := paths{
		placer: p, events: p.functions[i].events, reached: true,
		levels: append(p.levels[:0], level{loop: -1}), frames: append(p.frames[:0], way{}),
	}
	code := p.m.Instructions(i)
	for code.Next() {
		w.step(&code.Instruction)
	}
	p.levels, p.frames = w.levels[:0], w.frames[:0]
	return w.levels[0].cost, code.Err()
}

func (w *paths) top() *level { return &w.levels[len(w.levels)-1] }

func (w *paths) step(in *module.Instruction) {
	cost := w.costOf(in)
	if w.reached {
		w.top().cost = w.top().cost.plus(cost)
	}
	switch in.Op {
	case module.Block, module.If:
		_, results := w.blockType(in.Block)
		w.frames = append(w.frames, way{
			level: len(w.levels) - 1, dead: !w.reached, arm: in.Op == module.If, before: w.top().cost, arity: results,
		})
	case module.Loop:
		w.begun()
		w.charges = append(w.charges, work{})
		w.levels = append(w.levels, level{loop: w.loops})
		w.loops++
		params, _ := w.blockType(in.Block)
		w.frames = append(w.frames, way{level: len(w.levels) - 1, loop: true, dead: !w.reached, arity: params})
	case module.Else:
		f := &w.frames[len(w.frames)-1]
		w.arrive(f)
		f.arm = false
		w.top().cost, w.reached = f.before, !f.dead
	case module.End:
		w.end()
	case module.BrIf:
		w.branch(in.Immediate)
	case module.Br:
		w.branch(in.Immediate)
		w.reached = false
	case module.BrTable:
		for _, d := range in.Depths {
			w.branch(uint64(d))
		}
		w.reached = false
	case module.Return, module.Unreachable:
		w.branch(uint64(len(w.frames) - 1))
		w.reached = false
	}
}

// costOf returns the cost of an instruction, including the functions that it
// calls.
func (w *paths) costOf(in *module.Instruction) work {
	cost := work{bytes: uint64(in.End - in.Start), accesses: uint64(accesses(in.Op))}
	for len(w.events) > 0 && w.events[0].start <= uint32(in.Start) {
		cost = cost.plus(w.cost(&w.events[0]))
		w.events = w.events[1:]
	}
	return cost
}

// movedBytes is the cost of a branch for each value that it passes.
const movedBytes = 8

// blockType returns how many values a block takes and returns.
func (w *paths) blockType(b module.BlockType) (params, results int) {
	switch {
	case b.Index >= 0 && b.Index < len(w.m.Types):
		return len(w.m.Types[b.Index].Params), len(w.m.Types[b.Index].Results)
	case b.Index < 0 && b.Value != 0:
		return 0, 1
	}
	return 0, 0
}

// arrive records that the end of a block is reached from here, by a branch or
// by falling through.
func (w *paths) arrive(f *way) {
	if w.reached {
		f.left = true
		f.leaving = f.leaving.or(w.levels[f.level].cost)
	}
}

// branch handles a branch to a label, out of all loops on the way.
func (w *paths) branch(depth uint64) {
	if !w.reached || depth >= uint64(len(w.frames)) {
		return
	}
	f := &w.frames[len(w.frames)-1-int(depth)]
	w.top().cost.bytes += movedBytes * uint64(f.arity) // each value may be moved to where it is expected
	first := f.level + 1                               // of the loops that it leaves
	if f.loop {
		first = f.level // a pass through this one has ended
	}
	w.passed(first)
	if !f.loop {
		w.arrive(f)
	}
}

// passed records that a pass through the open loops from a level on has ended.
func (w *paths) passed(first int) {
	for _, l := range w.levels[first:] {
		if l.loop >= 0 {
			w.charges[l.loop] = w.charges[l.loop].or(l.cost)
		}
	}
}

// begun records the cost of getting to a loop, which may never be left: then
// the path up to here is the whole pass or call that it belongs to.
func (w *paths) begun() {
	if w.reached {
		w.passed(0)
		w.frames[0].leaving = w.frames[0].leaving.or(w.levels[0].cost)
	}
}

func (w *paths) end() {
	f := &w.frames[len(w.frames)-1]
	if f.loop {
		if w.reached {
			w.passed(f.level)
		}
		w.levels = w.levels[:len(w.levels)-1]
		w.frames = w.frames[:len(w.frames)-1]
		return
	}
	w.arrive(f)
	if f.arm && !f.dead {
		f.left = true
		f.leaving = f.leaving.or(f.before)
	}
	w.reached = f.left
	w.top().cost = f.leaving
	if len(w.frames) > 1 {
		w.frames = w.frames[:len(w.frames)-1]
	}
}
