package rig

import "github.com/jobhost/jobhost/runtime/module"

// The compiler's register allocator considers values that loops made live for
// longer than they are. So a function begins with a series of loops that
// produce one value each; the code after them runs short of registers.

// keep generates the values of the profile and returns the locals that hold them.
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
	// The following code may use them like the other locals.
	g.own = len(g.locals)
	return kept
}

// keepOne sets a local to its value, and uses it in a loop, which sometimes
// changes it.
func (g *generator) keepOne(n int, t byte) {
	counter := g.scratch(module.I32)
	loads := map[byte]uint32{module.I32: 0x28, module.I64: 0x29, module.F32: 0x2a, module.F64: 0x2b, module.V128: 0xfd00}
	g.i32(int32(g.IntN(400))) // the compiler recreates constants where they are used
	g.emit(module.Instruction{Op: loads[t]})
	g.at(module.LocalSet, n)
	g.i32(int32(1 + g.IntN(3)))
	g.at(module.LocalSet, counter)
	g.open(module.Loop, nil, nil)
	if g.chance(4) {
		depth := g.depth
		g.depth, g.straight = deepest-1, true
		g.expr(t)
		g.depth, g.straight = depth, false
		g.at(module.LocalSet, n)
	} else {
		g.showOne(n)
	}
	g.again(counter)
	g.close()
}

// tail generates code without a branch, up to the end of the function: only
// there does the allocator keep in registers what is no longer used, and take
// the registers of the values in use instead.
func (g *generator) tail() {
	if len(g.Kept) == 0 {
		return
	}
	g.straight, g.room = true, g.Room
	for range 2 + g.IntN(5) {
		t := g.pick(g.Kept)
		n := g.local(t)
		g.node(func() {
			g.operation(t)
			g.at(module.LocalSet, n)
			g.showOne(n)
		}, func() {})
	}
}

// show uses the kept values, or some of them: those that are only used in their
// loops are considered live nevertheless.
func (g *generator) show(kept []int) {
	if g.chance(2) {
		return
	}
	for _, n := range kept {
		g.node(func() { g.showOne(n) }, func() {})
	}
}

// showOne writes a local to memory.
func (g *generator) showOne(n int) {
	stores := map[byte]uint32{
		module.I32: i32Store, module.I64: 0x37, module.F32: 0x38, module.F64: 0x39, module.V128: 0xfd0b,
	}
	t := g.locals[n]
	g.i32(int32(60000 + 16*(n%64)))
	g.at(module.LocalGet, n)
	g.clear(t)
	g.emit(module.Instruction{Op: stores[t]})
}
