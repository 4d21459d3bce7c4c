package rewrite

import "github.com/jobhost/jobhost/runtime/module"

// added are the indices of what is added to a module.
type added struct {
	tick, fuel, budget, stop uint32 // globals
	action, mover            uint32 // types: () → (), and (i32, i32, i32) → ()
	counter                  uint32 // type (i32) → ()
	yield, copy, fill, count uint32 // functions

	interval int32
}

// appendTick appends a tick. It needs no local, since wazero remembers what it
// last stored in a global.
//
// The two forms do the same. How wazero assigns registers depends on the order
// of the predecessors of a block, and thus which form is faster when yield is
// not called. If a call of the guest follows at once it is the second form,
// calling: a recursion takes 5 % longer with it and 27 with the other.
// Everywhere else it is the first: a sort takes 7 % longer, not 25.
func (a *added) appendTick(c *code, weight uint32, calling bool) {
	if calling {
		c.open(module.Block)
	}
	c.getGlobal(a.tick)
	c.i32(int32(weight))
	c.op(opI32Sub)
	c.setGlobal(a.tick)
	if !calling {
		a.appendYield(c)
		return
	}
	c.getGlobal(a.tick)
	c.i32(0)
	c.op(opI32GtS)
	c.with(module.BrIf, 0)
	c.with(module.Call, a.yield)
	c.end()
}

// appendYield appends a call of yield for when the tick is used up.
func (a *added) appendYield(c *code) {
	c.getGlobal(a.tick)
	c.i32(0)
	c.op(opI32GtS)
	c.open(module.If)
	c.op(byte(module.Else))
	c.with(module.Call, a.yield)
	c.end()
}

// appendBulk appends a bulk operation preceded by a count, for sizes that are
// worth it.
func (a *added) appendBulk(c *code, in *module.Instruction, scratch uint32) {
	c.tee(scratch)
	c.get(scratch)
	c.i32(int32(small(in.Op)))
	c.op(opI32GtU)
	if in.Op != module.MemoryCopy && in.Op != module.MemoryFill {
		c.open(module.If)
		c.get(scratch)
		c.with(module.Call, a.count)
		c.end()
		*c = in.Append(*c)
		return
	}
	helper := a.copy
	if in.Op == module.MemoryFill {
		helper = a.fill
	}
	c.op(byte(module.If))
	c.signed(int64(a.mover))
	c.with(module.Call, helper)
	c.op(byte(module.Else))
	*c = in.Append(*c)
	c.end()
}

// yieldBody is
//
//	func yield() {
//		leave native code, and come back
//		used := fuel - tick
//		if used > budget || stop != 0 { trap }
//		tick = min(budget-used, interval)
//		fuel = used + tick
//	}
func (a *added) yieldBody() code {
	const used, next = 0, 1
	c := code{1, 2, module.I64} // one group of two locals
	// Growing by zero is the one instruction that always goes through Go.
	c.i32(0)
	c.with(module.MemoryGrow, 0)
	c.op(opDrop)

	c.getGlobal(a.fuel)
	c.getGlobal(a.tick)
	c.op(opI64ExtendS, opI64Sub)
	c.tee(used)
	c.getGlobal(a.budget)
	c.op(opI64GtS)
	c.getGlobal(a.stop)
	c.i32(0)
	c.op(opI32Ne, opI32Or)
	c.open(module.If)
	c.op(byte(module.Unreachable))
	c.end()

	c.getGlobal(a.budget)
	c.get(used)
	c.op(opI64Sub)
	c.tee(next)
	c.i64(int64(a.interval))
	c.get(next)
	c.i64(int64(a.interval))
	c.op(opI64LtS, opSelect)
	c.tee(next)
	c.op(opI32WrapI64)
	c.setGlobal(a.tick)
	c.get(used)
	c.get(next)
	c.op(opI64Add)
	c.setGlobal(a.fuel)
	c.end()
	return c
}

// countBody is
//
//	func count(n uint32) {
//		tick -= n >> largeShift
//		if tick <= 0 { yield() }
//	}
func (a *added) countBody() code {
	c := code{0}
	c.getGlobal(a.tick)
	c.get(0)
	c.i32(largeShift)
	c.op(opI32ShrU, opI32Sub)
	c.setGlobal(a.tick)
	a.appendYield(&c)
	c.end()
	return c
}

// copyBody is
//
//	func copy(to, from, n uint32) {
//		if from and to are in bounds {
//			for n > piece {
//				if to <= from {
//					memory.copy(to, from, piece)
//					to, from = to+piece, from+piece
//				} else {
//					memory.copy(to+n-piece, from+n-piece, piece)
//				}
//				n -= piece
//				count(piece)
//			}
//			count(n)
//		}
//		memory.copy(to, from, n) // traps if they are not
//	}
func (a *added) copyBody() code {
	const to, from, n = 0, 1, 2
	c := code{0}
	c.open(module.Block)
	c.inBounds(to, n)
	c.inBounds(from, n)
	c.open(module.Loop)
	c.morePieces(n)
	c.get(to)
	c.get(from)
	c.op(opI32LeU)
	c.open(module.If)
	c.get(to)
	c.get(from)
	c.i32(piece)
	c.with(module.MemoryCopy, 0, 0)
	c.advance(to)
	c.advance(from)
	c.op(byte(module.Else))
	for _, start := range []uint32{to, from} {
		c.get(start)
		c.get(n)
		c.op(opI32Add)
		c.i32(piece)
		c.op(opI32Sub)
	}
	c.i32(piece)
	c.with(module.MemoryCopy, 0, 0)
	c.end()
	a.pieceDone(&c, n)
	c.get(to)
	c.get(from)
	c.get(n)
	c.with(module.MemoryCopy, 0, 0)
	c.end()
	return c
}

// fillBody is copyBody for memory.fill, which has no direction.
func (a *added) fillBody() code {
	const to, value, n = 0, 1, 2
	c := code{0}
	c.open(module.Block)
	c.inBounds(to, n)
	c.open(module.Loop)
	c.morePieces(n)
	c.get(to)
	c.get(value)
	c.i32(piece)
	c.with(module.MemoryFill, 0)
	c.advance(to)
	a.pieceDone(&c, n)
	c.get(to)
	c.get(value)
	c.get(n)
	c.with(module.MemoryFill, 0)
	c.end()
	return c
}

// inBounds leaves the enclosing block unless n bytes from start are in memory.
func (c *code) inBounds(start, n uint32) {
	c.get(start)
	c.op(opI64ExtendU)
	c.get(n)
	c.op(opI64ExtendU, opI64Add)
	c.with(module.MemorySize, 0)
	c.op(opI64ExtendU)
	c.i64(16)
	c.op(opI64Shl, opI64GtU)
	c.with(module.BrIf, 0)
}

// morePieces opens an if for n larger than a piece.
func (c *code) morePieces(n uint32) {
	c.get(n)
	c.i32(piece)
	c.op(opI32GtU)
	c.open(module.If)
}

func (c *code) advance(local uint32) {
	c.get(local)
	c.i32(piece)
	c.op(opI32Add)
	c.set(local)
}

// pieceDone counts a piece, continues with the next, closes the if, the loop
// and the block, and counts the rest before it closes the block.
func (a *added) pieceDone(c *code, n uint32) {
	c.get(n)
	c.i32(piece)
	c.op(opI32Sub)
	c.set(n)
	c.i32(piece)
	c.with(module.Call, a.count)
	c.with(module.Br, 1)
	c.end() // if
	c.end() // loop
	c.get(n)
	c.with(module.Call, a.count)
	c.end() // block
}
