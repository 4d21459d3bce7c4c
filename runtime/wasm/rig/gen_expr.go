package rig

import (
	"strings"

	"github.com/jobhost/jobhost/runtime/module"
)

// deepest is the maximum nesting depth of expressions.
const deepest = 7

// expr pushes a value of a type.
func (g *generator) expr(t byte) {
	g.node(func() {
		g.depth++
		defer func() { g.depth-- }()
		if g.room < 0 || g.depth > deepest || g.chance(4) {
			g.leaf(t)
			return
		}
		g.compound(t)
	}, func() { g.zero(t) })
}

// exprs pushes a value of each type.
func (g *generator) exprs(types []byte) {
	for _, t := range types {
		g.expr(t)
	}
}

func (g *generator) leaf(t byte) {
	switch n := g.IntN(5); {
	case n == 0:
		g.constant(t)
	case n == 1 && g.global(t, false) >= 0:
		g.at(module.GlobalGet, g.global(t, false))
	default:
		g.at(module.LocalGet, g.local(t))
	}
}

func (g *generator) compound(t byte) {
	if g.straight {
		if g.chance(8) {
			g.choice(t)
		} else {
			g.operation(t)
		}
		return
	}
	switch n := g.IntN(24); n {
	case 0:
		g.expr(t)
		g.at(module.LocalTee, g.local(t))
	case 1, 2:
		g.choice(t)
	case 3:
		g.condition()
		g.open(module.If, nil, []byte{t})
		g.expr(t)
		g.op(module.Else)
		g.expr(t)
		g.close()
	case 4:
		g.blockOf(t)
	case 5:
		g.loopOf(t)
	case 6:
		g.switchOf(t)
	case 7:
		g.leave(t)
	case 8:
		if !g.callFor(t) {
			g.operation(t)
		}
	case 9:
		g.ofEntity(t)
	default:
		g.operation(t)
	}
}

// choice generates a select.
func (g *generator) choice(t byte) {
	g.expr(t)
	g.expr(t)
	g.condition()
	if t == module.FuncRef || t == module.ExternRef || g.chance(3) {
		g.emit(module.Instruction{Op: module.SelectTyped, Type: t})
		return
	}
	g.op(module.Select)
}

// condition pushes an i32 to branch on.
func (g *generator) condition() {
	if !g.Compare && g.chance(2) {
		g.expr(module.I32)
		return
	}
	g.node(func() {
		t := g.pick([]byte{module.I32, module.I64})
		if g.chance(8) {
			g.masked(t)
			if t == module.I64 {
				g.op(0x50)
			} else {
				g.op(i32Eqz)
			}
			return
		}
		g.masked(t)
		g.masked(t)
		first, last := ordered(t)
		g.op(first + uint32(g.IntN(int(last-first)+1)))
	}, func() { g.i32(0) })
}

// masked pushes an operand of a comparison: often 0 or an and.
func (g *generator) masked(t byte) {
	and := i32And
	if t == module.I64 {
		and = i64And
	}
	switch g.IntN(6) {
	case 0, 1:
		g.zero(t)
	case 2:
		g.constant(t)
	case 3:
		g.expr(t)
	default:
		g.node(func() {
			g.expr(t)
			if g.chance(2) {
				g.constant(t)
			} else {
				g.expr(t)
			}
			g.op(and)
		}, func() { g.zero(t) })
	}
}

// blockOf generates a block that takes parameters and returns a value.
func (g *generator) blockOf(t byte) {
	params := g.typeList(2)
	g.exprs(params)
	g.open(module.Block, params, []byte{t})
	for i := len(params) - 1; i >= 0; i-- {
		g.at(module.LocalSet, g.local(params[i]))
	}
	for range g.IntN(3) {
		g.statement()
	}
	g.expr(t)
	g.close()
}

// loopOf generates a loop that carries its value around.
func (g *generator) loopOf(t byte) {
	counter := g.scratch(module.I32)
	g.i32(int32(1 + g.IntN(4)))
	g.at(module.LocalSet, counter)
	g.expr(t)
	g.open(module.Loop, []byte{t}, []byte{t})
	g.at(module.LocalSet, g.local(t))
	g.burn()
	if g.chance(2) {
		g.statement()
	}
	g.expr(t)
	g.again(counter)
	g.close()
}

// again branches back to the innermost loop, as often as a counter says.
func (g *generator) again(counter int) {
	g.at(module.LocalGet, counter)
	g.i32(1)
	g.op(i32Sub)
	g.at(module.LocalTee, counter)
	g.at(module.BrIf, 0)
}

// switchOf generates a br_table whose targets take a value.
func (g *generator) switchOf(t byte) {
	g.open(module.Block, nil, []byte{t})
	g.open(module.Block, nil, []byte{t})
	g.expr(t)
	g.condition()
	depths := make([]uint32, 1+g.IntN(4))
	for i := range depths {
		depths[i] = uint32(g.IntN(2))
	}
	g.emit(module.Instruction{Op: module.BrTable, Depths: depths})
	g.close()
	g.at(module.LocalSet, g.local(t))
	g.expr(t)
	g.close()
}

// leave generates a value that a branch may take out of a block, if there is such a block.
func (g *generator) leave(t byte) {
	g.expr(t)
	for depth := range g.labels {
		l := g.labels[len(g.labels)-1-depth]
		if string(l.types) == string(t) && !g.loops(depth) {
			g.condition()
			g.at(module.BrIf, depth)
			return
		}
	}
}

// callFor calls a function whose first result has a type, if there is one.
func (g *generator) callFor(t byte) bool {
	from := g.IntN(len(g.m.Functions))
	for i := range g.m.Functions {
		f := (from + i) % len(g.m.Functions)
		kind := g.m.Types[g.m.Functions[f]]
		if len(kind.Results) == 0 || kind.Results[0] != t {
			continue
		}
		g.call(f)
		for range kind.Results[1:] {
			g.op(module.Drop)
		}
		return true
	}
	return false
}

// call calls a function, sometimes by its index in the first table.
func (g *generator) call(f int) {
	kind := g.m.Types[g.m.Functions[f]]
	g.exprs(kind.Params)
	if f >= entries-2 || g.chance(2) {
		g.at(module.Call, f)
		return
	}
	if g.chance(10) {
		g.expr(module.I32) // traps most of the time
	} else {
		g.i32(int32(f))
	}
	g.at2(module.CallIndirect, int(g.m.Functions[f]), 0)
}

// ofEntity generates a value that depends on memory, tables and references.
func (g *generator) ofEntity(t byte) {
	table := g.IntN(len(g.m.Tables))
	switch {
	case t == module.I32:
		switch g.IntN(5) {
		case 0:
			g.at(module.MemorySize, 0)
		case 1:
			g.i32(int32(g.IntN(2)))
			g.at(module.MemoryGrow, 0)
		case 2:
			g.at(module.TableSize, table)
		case 3:
			g.reference(g.m.Tables[table].Type)
			g.i32(int32(g.IntN(2)))
			g.at(module.TableGrow, table)
		default:
			g.reference(g.m.Tables[table].Type)
			g.op(module.RefIsNull)
		}
	case g.m.Tables[table].Type == t:
		g.entry(table)
		g.at(module.TableGet, table)
	default:
		g.operation(t)
	}
}

// reference pushes a reference, even in programs without any.
func (g *generator) reference(t byte) {
	if g.has(t) {
		g.expr(t)
		return
	}
	g.constant(t)
}

// entry pushes the index of a table entry, rarely one out of range.
func (g *generator) entry(table int) {
	if g.chance(40) {
		g.expr(module.I32)
		return
	}
	g.i32(int32(g.IntN(int(g.m.Tables[table].Min))))
}

// operation generates an instruction of the table of opcodes and its operands.
func (g *generator) operation(t byte) {
	ops := g.operations[t]
	if len(ops) == 0 {
		g.leaf(t)
		return
	}
	g.apply(ops[g.IntN(len(ops))])
}

// apply generates an instruction and its operands.
func (g *generator) apply(op uint32) {
	o := module.Describe(op)
	for i, t := range []byte(o.Pop) {
		switch {
		case i == 0 && (o.Operands == module.Memory || o.Operands == module.MemoryLane):
			g.address()
		case op >= i32TruncF32S && op <= i64TruncF64U && strings.Contains(o.Name, ".trunc_f") && !g.chance(10):
			g.convertible(t)
		default:
			g.expr(t)
		}
		if showsBits(op, i) {
			g.clear(t)
		}
		if i == 1 && !g.chance(20) && (op >= i32DivS && op <= i32RemU || op >= i64DivS && op <= i64RemU) {
			g.notZero(t)
		}
	}
	g.instruction(op, o)
}

// instruction generates an instruction whose operands are on the stack, and
// clears NaNs in its result.
func (g *generator) instruction(op uint32, o *module.Opcode) {
	in := module.Instruction{Op: op}
	if o.Operands == module.Memory || o.Operands == module.MemoryLane {
		in.Align, in.Immediate = uint32(g.IntN(int(o.Align)+1)), g.offset()
	}
	if o.Lanes > 0 {
		in.Lane = byte(g.IntN(int(o.Lanes)))
	}
	if o.Operands == module.Lanes {
		in.Bytes = make([]byte, 16)
		for i := range in.Bytes {
			in.Bytes[i] = byte(g.IntN(int(o.Lanes)))
		}
	}
	g.emit(in)
	if eq := clearer(op); eq != 0 {
		s := g.scratch(module.V128)
		g.at(module.LocalTee, s)
		g.at(module.LocalGet, s)
		g.at(module.LocalGet, s)
		g.op(eq, vectorAnd)
	}
}

// convertible pushes a float in the range of all integer types except the
// unsigned ones.
func (g *generator) convertible(t byte) {
	g.expr(module.I32)
	g.i32(0x7fff)
	g.op(i32And)
	if t == module.F32 {
		g.op(f32ConvertI32)
	} else {
		g.op(f64ConvertI32)
	}
}

func (g *generator) notZero(t byte) {
	if t == module.I32 {
		g.i32(1)
		g.op(i32Or)
		return
	}
	g.emit(module.Instruction{Op: module.I64Const, Immediate: 1})
	g.op(i64Or)
}

// clear turns a scalar NaN into 0, without a branch or a select.
func (g *generator) clear(t byte) {
	if t != module.F32 && t != module.F64 {
		return
	}
	s := g.scratch(t)
	g.at(module.LocalTee, s)
	if t == module.F32 {
		g.op(i32OfF32)
		g.i32(0)
		g.at(module.LocalGet, s)
		g.at(module.LocalGet, s)
		g.op(f32Eq, i32Sub, i32And, f32OfI32)
		return
	}
	g.op(i64OfF64)
	g.emit(module.Instruction{Op: module.I64Const})
	g.at(module.LocalGet, s)
	g.at(module.LocalGet, s)
	g.op(f64Eq, i64ExtendI32U, i64Sub, i64And, f64OfI64)
}

// address pushes an address, usually one in memory.
func (g *generator) address() {
	switch n := g.IntN(40); {
	case n == 0:
		g.expr(module.I32)
	case n < 12:
		g.expr(module.I32)
		g.i32(0xfff)
		g.op(i32And)
	default:
		g.i32(int32(g.IntN(400)))
	}
}

func (g *generator) offset() uint64 {
	switch g.IntN(60) {
	case 0:
		return uint64(g.Uint32())
	case 1:
		return pages<<16 - uint64(g.IntN(20))
	case 2, 3, 4, 5, 6, 7, 8, 9:
		return uint64(g.IntN(60000))
	}
	return uint64(g.IntN(64))
}
