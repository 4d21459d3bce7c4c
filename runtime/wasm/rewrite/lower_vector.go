package rewrite

import (
	"encoding/binary"

	"github.com/jobhost/jobhost/runtime/module"
)

// Vector instructions, by the number after their prefix.
const (
	vConst         = 12
	vSwizzle       = 14
	vSplat32       = 17
	vSplat64       = 18
	vExtract32     = 27
	vReplace32     = 28
	vExtract64     = 29
	vReplace64     = 30
	vExtractF32    = 31
	vExtractF64    = 33
	vAnd           = 78
	vAndNot        = 79
	vOr            = 80
	vNarrow16S     = 101
	vAdd8          = 110
	vExtendLow8S   = 135
	vExtendHigh8S  = 136
	vShrS16        = 140
	vShrU16        = 141
	opF32Min       = 0x96
	opF32Max       = 0x97
	opF64Min       = 0xa4
	opF64Max       = 0xa5
	opI32Mul       = 0x6c
	opI64Mul       = 0x7e
	opF32ConvertU  = 0xb3
	opF64ConvertU  = 0xb8
	truncSatF32S   = 0xfc00
	truncSatF32U   = 0xfc01
	truncSatF64S   = 0xfc02
	truncSatF64U   = 0xfc03
	opcodeLoad8U   = 0x2d
	everyByte      = 0x01010101
	lowNibbles     = 0x0f0f0f0f0f0f0f0f
	outOfLanes     = 0xff
	lanesOfVector  = 16
	bytesOfVectors = 2 * lanesOfVector
)

// vectorLowerings are the vector instructions that are written differently, by
// number.
var vectorLowerings = [256]func(*functionWriter, *module.Instruction){
	7:   (*functionWriter).load8Splat,
	13:  (*functionWriter).shuffle,
	15:  (*functionWriter).splat8,
	34:  (*functionWriter).replaceF64,
	82:  (*functionWriter).bitselect,
	98:  (*functionWriter).popcnt8,
	108: (*functionWriter).shrS8,
	213: func(f *functionWriter, _ *module.Instruction) { f.product(lane64, 0) },
	220: func(f *functionWriter, _ *module.Instruction) { f.product(lane32S, 0) },
	221: func(f *functionWriter, _ *module.Instruction) { f.product(lane32S, 2) },
	222: func(f *functionWriter, _ *module.Instruction) { f.product(lane32U, 0) },
	223: func(f *functionWriter, _ *module.Instruction) { f.product(lane32U, 2) },
	232: func(f *functionWriter, _ *module.Instruction) { f.pairs32(opF32Min) },
	233: func(f *functionWriter, _ *module.Instruction) { f.pairs32(opF32Max) },
	244: func(f *functionWriter, _ *module.Instruction) { f.pairs64(opF64Min) },
	245: func(f *functionWriter, _ *module.Instruction) { f.pairs64(opF64Max) },
	248: func(f *functionWriter, _ *module.Instruction) { f.truncF32(truncSatF32S) },
	249: func(f *functionWriter, _ *module.Instruction) { f.truncF32(truncSatF32U) },
	251: (*functionWriter).convertF32U,
	252: func(f *functionWriter, _ *module.Instruction) { f.truncF64(truncSatF64S) },
	253: func(f *functionWriter, _ *module.Instruction) { f.truncF64(truncSatF64U) },
	255: (*functionWriter).convertF64U,
}

func lowerVector(op uint32) func(*functionWriter, *module.Instruction) {
	return vectorLowerings[op&0xff]
}

// isLowered reports whether a vector instruction is replaced by a sequence of
// others.
func isLowered(op uint32) bool { return module.IsVector(op) && lowerVector(op) != nil }

// v appends vector instructions without operands.
func (c *code) v(numbers ...uint32) {
	for _, n := range numbers {
		*c = module.AppendOpcode(*c, 0xfd00|n)
	}
}

// lane appends a vector instruction with a lane index.
func (c *code) lane(number uint32, lane int) {
	c.v(number)
	c.op(byte(lane))
}

// vector appends a constant vector.
func (c *code) vector(low, high uint64) {
	c.v(vConst)
	*c = binary.LittleEndian.AppendUint64(*c, low)
	*c = binary.LittleEndian.AppendUint64(*c, high)
}

// take sets the added vectors to the operands on the stack, the last of which
// is on top, and returns them.
func (f *functionWriter) take(n int) []uint32 {
	locals := make([]uint32, n)
	for i := n - 1; i >= 0; i-- {
		locals[i] = f.local(module.V128, i)
		f.code.set(locals[i])
	}
	return locals
}

// splat8 fills a vector with the lowest byte of a number.
func (f *functionWriter) splat8(*module.Instruction) {
	f.code.i32(0xff)
	f.code.op(opI32And)
	f.spread()
}

func (f *functionWriter) load8Splat(in *module.Instruction) {
	load := *in
	load.Op = opcodeLoad8U
	f.code = load.Append(f.code)
	f.spread()
}

// spread fills a vector with a byte.
func (f *functionWriter) spread() {
	f.code.i32(everyByte)
	f.code.op(opI32Mul)
	f.code.v(vSplat32)
}

// shuffle picks lanes from each of the two vectors and combines the two.
func (f *functionWriter) shuffle(in *module.Instruction) {
	c := &f.code
	var picks [bytesOfVectors]byte
	for i, lane := range in.Bytes {
		picks[i], picks[i+lanesOfVector] = outOfLanes, outOfLanes
		if lane < lanesOfVector {
			picks[i] = lane
		} else {
			picks[i+lanesOfVector] = lane - lanesOfVector
		}
	}
	pick := func(b []byte) {
		c.vector(binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]))
		c.v(vSwizzle)
	}
	second := f.take(1)[0]
	pick(picks[:lanesOfVector])
	c.get(second)
	pick(picks[lanesOfVector:])
	c.v(vOr)
}

func (f *functionWriter) replaceF64(in *module.Instruction) {
	f.code.op(opI64ReinterpretF64)
	f.code.lane(vReplace64, int(in.Lane))
}

// bitselect is (a and mask) or (b and not mask).
func (f *functionWriter) bitselect(*module.Instruction) {
	c := &f.code
	mask, second := f.local(module.V128, 0), f.local(module.V128, 1)
	c.set(mask)
	c.set(second)
	c.get(mask)
	c.v(vAnd)
	c.get(second)
	c.get(mask)
	c.v(vAndNot, vOr)
}

// popcnt8 looks up both halves of each byte in a table.
func (f *functionWriter) popcnt8(*module.Instruction) {
	c, v := &f.code, f.take(1)[0]
	table := func() { c.vector(0x0302020102010100, 0x0403030203020201) }
	table()
	c.get(v)
	c.vector(lowNibbles, lowNibbles)
	c.v(vAnd, vSwizzle)
	table()
	c.get(v)
	c.i32(4)
	c.v(vShrU16)
	c.vector(lowNibbles, lowNibbles)
	c.v(vAnd, vSwizzle, vAdd8)
}

// shrS8 shifts lanes as 16-bit numbers.
func (f *functionWriter) shrS8(*module.Instruction) {
	c := &f.code
	by := f.local(module.I32, 0)
	c.i32(7)
	c.op(opI32And)
	c.set(by)
	v := f.take(1)[0]
	for _, half := range []uint32{vExtendLow8S, vExtendHigh8S} {
		c.get(v)
		c.v(half)
		c.get(by)
		c.v(vShrS16)
	}
	c.v(vNarrow16S)
}

// How a lane is converted to a 64-bit number.
type laneKind uint8

const (
	lane64 laneKind = iota
	lane32S
	lane32U
)

func (c *code) lane64(kind laneKind, lane int) {
	switch kind {
	case lane32S:
		c.lane(vExtract32, lane)
		c.op(opI64ExtendS)
	case lane32U:
		c.lane(vExtract32, lane)
		c.op(opI64ExtendU)
	default:
		c.lane(vExtract64, lane)
	}
}

// product multiplies two lanes of each vector, starting at from.
func (f *functionWriter) product(kind laneKind, from int) {
	c, v := &f.code, f.take(2)
	for i := range 2 {
		for _, operand := range v {
			c.get(operand)
			c.lane64(kind, from+i)
		}
		c.op(opI64Mul)
		if i == 0 {
			c.v(vSplat64)
		}
	}
	c.lane(vReplace64, 1)
}

// pairs32 applies an operation to each pair of 32-bit floats.
func (f *functionWriter) pairs32(op byte) {
	c, v := &f.code, f.take(2)
	c.get(v[0])
	for i := range 4 {
		for _, operand := range v {
			c.get(operand)
			c.lane(vExtractF32, i)
		}
		c.op(op, opI32ReinterpretF32)
		c.lane(vReplace32, i)
	}
}

func (f *functionWriter) pairs64(op byte) {
	c, v := &f.code, f.take(2)
	c.get(v[0])
	for i := range 2 {
		for _, operand := range v {
			c.get(operand)
			c.lane(vExtractF64, i)
		}
		c.op(op, opI64ReinterpretF64)
		c.lane(vReplace64, i)
	}
}

func (f *functionWriter) truncF32(op uint32) {
	c, v := &f.code, f.take(1)[0]
	c.get(v)
	for i := range 4 {
		c.get(v)
		c.lane(vExtractF32, i)
		c.with(op)
		c.lane(vReplace32, i)
	}
}

func (f *functionWriter) convertF32U(*module.Instruction) {
	c, v := &f.code, f.take(1)[0]
	c.get(v)
	for i := range 4 {
		c.get(v)
		c.lane(vExtract32, i)
		c.op(opF32ConvertU, opI32ReinterpretF32)
		c.lane(vReplace32, i)
	}
}

// truncF64 produces two 32-bit numbers, followed by zeros.
func (f *functionWriter) truncF64(op uint32) {
	c, v := &f.code, f.take(1)[0]
	c.vector(0, 0)
	for i := range 2 {
		c.get(v)
		c.lane(vExtractF64, i)
		c.with(op)
		c.lane(vReplace32, i)
	}
}

func (f *functionWriter) convertF64U(*module.Instruction) {
	c, v := &f.code, f.take(1)[0]
	c.get(v)
	for i := range 2 {
		c.get(v)
		c.lane(vExtract32, i)
		c.op(opF64ConvertU, opI64ReinterpretF64)
		c.lane(vReplace64, i)
	}
}
