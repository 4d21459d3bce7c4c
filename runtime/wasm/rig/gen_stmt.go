package rig

import "github.com/jobhost/jobhost/runtime/module"

// statement leaves the stack unchanged.
func (g *generator) statement() {
	g.node(func() {
		if g.room < 0 || len(g.labels) > 12 {
			return
		}
		g.anyStatement()
	}, func() {})
}

func (g *generator) anyStatement() {
	switch g.IntN(20) {
	case 0, 1, 2, 3:
		n := g.IntN(g.own)
		g.expr(g.locals[n])
		g.at(module.LocalSet, n)
	case 4, 5:
		t := g.pick(g.Types)
		if n := g.global(t, true); n >= 0 {
			g.expr(t)
			g.clear(t)
			g.at(module.GlobalSet, n)
		}
	case 6, 7, 8:
		g.operation(0) // stores
	case 9:
		g.expr(g.pick(g.Types))
		g.op(module.Drop)
	case 10:
		g.fork()
	case 11:
		g.repeat()
	case 12:
		g.several()
	case 13:
		g.dispatch()
	case 14:
		g.jump()
	case 15:
		g.callOff()
	case 16:
		g.bulkMemory()
	case 17:
		g.bulkTable()
	default:
		g.exit()
	}
}

// nested generates the statements in a block.
func (g *generator) nested() {
	for range g.IntN(3) {
		g.statement()
	}
}

// fork generates an if, with or without else.
func (g *generator) fork() {
	g.condition()
	g.open(module.If, nil, nil)
	g.nested()
	if g.chance(2) {
		g.op(module.Else)
		g.nested()
	}
	g.close()
}

// repeat generates a loop.
func (g *generator) repeat() {
	counter := g.scratch(module.I32)
	g.i32(int32(1 + g.IntN(6)))
	g.at(module.LocalSet, counter)
	g.open(module.Loop, nil, nil)
	g.burn()
	g.nested()
	g.again(counter)
	g.close()
}

// several generates a block that returns any number of values.
func (g *generator) several() {
	results := g.typeList(4)
	g.open(module.Block, nil, results)
	g.nested()
	g.exprs(results)
	if g.chance(2) {
		g.condition()
		g.at(module.BrIf, 0)
	}
	g.close()
	for i := len(results) - 1; i >= 0; i-- {
		g.at(module.LocalSet, g.local(results[i]))
	}
}

// dispatch generates a br_table out of some blocks.
func (g *generator) dispatch() {
	n := 1 + g.IntN(4)
	for range n {
		g.open(module.Block, nil, nil)
	}
	g.condition()
	depths := make([]uint32, 1+g.IntN(8))
	if g.Room > 200 && g.chance(4) {
		depths = make([]uint32, 400)
	}
	for i := range depths {
		depths[i] = uint32(g.IntN(n))
	}
	g.emit(module.Instruction{Op: module.BrTable, Depths: depths})
	for range n {
		g.close()
		g.nested()
	}
}

// loops reports whether a label is that of a loop. Only loops take parameters
// that again counts, so other branches avoid them.
func (g *generator) loops(depth int) bool { return g.labels[len(g.labels)-1-depth].loop }

// jump generates a conditional branch out of some enclosing block.
func (g *generator) jump() {
	depth := g.IntN(len(g.labels))
	if g.loops(depth) {
		return
	}
	types := g.labels[len(g.labels)-1-depth].types
	g.exprs(types)
	g.condition()
	g.at(module.BrIf, depth)
	for range types {
		g.op(module.Drop)
	}
}

// exit generates a conditional branch or return, followed by dead code.
func (g *generator) exit() {
	g.condition()
	g.open(module.If, nil, nil)
	depth := g.IntN(len(g.labels))
	switch {
	case g.chance(12):
		g.op(module.Unreachable)
	case g.loops(depth) || g.chance(3):
		g.exprs(g.labels[0].types)
		g.op(module.Return)
	default:
		g.exprs(g.labels[len(g.labels)-1-depth].types)
		g.at(module.Br, depth)
	}
	g.dead()
	g.close()
}

// dead generates unreachable code, where operands may be missing.
func (g *generator) dead() {
	switch g.IntN(6) {
	case 0:
		g.op(i32Add, module.Drop)
	case 1:
		g.op(module.Select, module.Drop)
	case 2:
		g.op(module.Drop, module.Drop)
	case 3:
		g.statement()
	case 4:
		g.i32(1)
		g.op(i32LtU)
		g.emit(module.Instruction{Op: module.BrTable, Depths: []uint32{0, 0}})
	}
}

// callOff calls a function and drops its results.
func (g *generator) callOff() {
	f := g.IntN(len(g.m.Functions))
	g.call(f)
	for range g.m.Types[g.m.Functions[f]].Results {
		g.op(module.Drop)
	}
}

// size pushes the size of a bulk operation, usually small.
func (g *generator) size(most int) {
	if g.chance(12) {
		g.expr(module.I32)
		return
	}
	g.i32(int32(g.IntN(most)))
}

func (g *generator) bulkMemory() {
	g.address()
	switch g.IntN(7) {
	case 0, 1, 2:
		g.address()
		g.size(9000)
		g.at2(module.MemoryCopy, 0, 0)
	case 3, 4:
		g.expr(module.I32)
		g.size(9000)
		g.at(module.MemoryFill, 0)
	case 5:
		g.i32(int32(g.IntN(40)))
		g.size(40)
		g.at2(module.MemoryInit, g.IntN(len(g.m.Data)), 0)
	default:
		g.op(module.Drop)
		g.at(module.DataDrop, g.IntN(len(g.m.Data)))
	}
}

func (g *generator) bulkTable() {
	table := g.IntN(len(g.m.Tables))
	t := g.m.Tables[table].Type
	g.entry(table)
	switch g.IntN(8) {
	case 0, 1:
		g.reference(t)
		g.at(module.TableSet, table)
	case 2, 3:
		g.reference(t)
		g.size(3)
		g.at(module.TableFill, table)
	case 4, 5:
		g.entry(table)
		g.size(3)
		g.at2(module.TableCopy, table, table)
	case 6:
		g.i32(int32(g.IntN(3)))
		g.size(2)
		g.at2(module.TableInit, 1, 0) // its second operand is the table
	default:
		g.op(module.Drop)
		if g.chance(4) {
			g.at(module.ElemDrop, 1)
		}
	}
}
