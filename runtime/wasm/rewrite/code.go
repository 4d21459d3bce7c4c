package rewrite

import (
	"encoding/binary"

	"github.com/jobhost/jobhost/runtime/module"
)

// Opcodes of the added code that package module has no names for.
const (
	opDrop       = 0x1a
	opSelect     = 0x1b
	opI32Ne      = 0x47
	opI32GtS     = 0x4a
	opI32GtU     = 0x4b
	opI32LeU     = 0x4d
	opI64LtS     = 0x53
	opI64GtS     = 0x55
	opI64GtU     = 0x56
	opI32Add     = 0x6a
	opI32Sub     = 0x6b
	opI32Or      = 0x72
	opI32ShrU    = 0x76
	opI64Add     = 0x7c
	opI64Sub     = 0x7d
	opI64Shl     = 0x86
	opI32WrapI64 = 0xa7
	opI64ExtendS = 0xac
	opI64ExtendU = 0xad
	noResult     = 0x40
)

// code is a sequence of instructions that is being written, or another part
// of a module.
type code []byte

// u32 appends an unsigned number.
func (c *code) u32(v uint32) { *c = binary.AppendUvarint(*c, uint64(v)) }

// signed appends a signed number.
func (c *code) signed(v int64) {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			*c = append(*c, b)
			return
		}
		*c = append(*c, b|0x80)
	}
}

// op appends instructions without operands.
func (c *code) op(ops ...byte) { *c = append(*c, ops...) }

// with appends an instruction with an index, or two.
func (c *code) with(op uint32, indices ...uint32) {
	if prefix := byte(op >> 8); prefix != 0 {
		*c = append(*c, prefix)
		c.u32(op & 0xff)
	} else {
		*c = append(*c, byte(op))
	}
	for _, i := range indices {
		c.u32(i)
	}
}

func (c *code) get(local uint32)       { c.with(module.LocalGet, local) }
func (c *code) set(local uint32)       { c.with(module.LocalSet, local) }
func (c *code) tee(local uint32)       { c.with(module.LocalTee, local) }
func (c *code) getGlobal(index uint32) { c.with(module.GlobalGet, index) }
func (c *code) setGlobal(index uint32) { c.with(module.GlobalSet, index) }

func (c *code) i32(v int32) {
	c.op(byte(module.I32Const))
	c.signed(int64(v))
}

func (c *code) i64(v int64) {
	c.op(byte(module.I64Const))
	c.signed(v)
}

// open begins a block that returns nothing.
func (c *code) open(op uint32) { c.op(byte(op), noResult) }

func (c *code) end() { c.op(byte(module.End)) }

// sized appends something with its size in front.
func (c *code) sized(b []byte) {
	c.u32(uint32(len(b)))
	*c = append(*c, b...)
}
