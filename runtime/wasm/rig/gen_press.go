package rig

import "github.com/jobhost/jobhost/runtime/module"

// The compiler's allocator of registers takes values that loops made for alive
// for longer than they are. So a function begins with loops in a row that leave
// a value each; what comes after them runs short of registers.

// keep makes the values of the profile and returns the locals that hold them.
func (g *generator) keep() []int {
	if len(g.Kept) == 0 {
		return nil
	}
	var kept []int
	for range 6 + g.IntN(17) {
		t := g.pick(g.Kept)
		n := g.scratch(t)
		kept = append(kept, n)
		g.node(func() { g.keepOne(n, t) }, func() {})
	}
	// What follows may use them, as it uses the other locals.
	g.own = len(g.locals)
	return kept
}

// keepOne gives a local its value, in a loop.
func (g *generator) keepOne(n int, t byte) {
	counter := g.scratch(module.I32)
	g.constant(t)
	g.at(module.LocalSet, n)
	g.i32(int32(1 + g.IntN(3)))
	g.at(module.LocalSet, counter)
	g.open(module.Loop, nil, nil)
	if g.chance(3) {
		depth := g.depth
		g.depth = deepest - 1
		g.expr(t)
		g.depth = depth
		g.at(module.LocalSet, n)
	}
	g.again(counter)
	g.close()
}

// show writes the values that were kept into memory.
func (g *generator) show(kept []int) {
	stores := map[byte]uint32{
		module.I32: i32Store, module.I64: 0x37, module.F32: 0x38, module.F64: 0x39, module.V128: 0xfd0b,
	}
	for i, n := range kept {
		g.node(func() {
			t := g.locals[n]
			g.i32(int32(60000 + 16*i))
			g.at(module.LocalGet, n)
			g.clear(t)
			g.emit(module.Instruction{Op: stores[t]})
		}, func() {})
	}
}
