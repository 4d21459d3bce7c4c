package rewrite

import "github.com/jobhost/jobhost/runtime/module"

// Opcodes without a name in package module.
const (
	opNop               = 0x01
	opDrop              = byte(module.Drop)
	opSelect            = byte(module.Select)
	opI32Eqz            = 0x45
	opI32Ne             = 0x47
	opI32LtS            = 0x48
	opI32GtS            = 0x4a
	opI32GtU            = 0x4b
	opI32LeU            = 0x4d
	opI32GeU            = 0x4f
	opI64LtS            = 0x53
	opI64GtS            = 0x55
	opI64GtU            = 0x56
	opI64GeU            = 0x5a
	opI32Add            = 0x6a
	opI32Sub            = 0x6b
	opI32And            = 0x71
	opI32Or             = 0x72
	opI32Xor            = 0x73
	opI32ShrU           = 0x76
	opI64Add            = 0x7c
	opI64Sub            = 0x7d
	opI64And            = 0x83
	opI64Or             = 0x84
	opI64Shl            = 0x86
	opF32Copysign       = 0x98
	opF64Copysign       = 0xa6
	opI32WrapI64        = 0xa7
	opI64ExtendS        = 0xac
	opI64ExtendU        = 0xad
	opI32ReinterpretF32 = 0xbc
	opI64ReinterpretF64 = 0xbd
	opF32ReinterpretI32 = 0xbe
	opF64ReinterpretI64 = 0xbf
	opI64Extend32S      = 0xc4
	noResult            = 0x40
)

// code is a sequence of instructions being written, or another part of a
// module.
type code []byte

// u32 appends an unsigned number.
func (c *code) u32(v uint32) { *c = module.AppendU32(*c, v) }

// signed appends a signed number.
func (c *code) signed(v int64) { *c = module.AppendS64(*c, v) }

// op appends instructions without operands.
func (c *code) op(ops ...byte) { *c = append(*c, ops...) }

// with appends an instruction with one or more indices.
func (c *code) with(op uint32, indices ...uint32) {
	*c = module.AppendOpcode(*c, op)
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

// sized appends something preceded by its size.
func (c *code) sized(b []byte) { *c = module.AppendSized(*c, b) }

// open begins a block that returns nothing.
func (c *code) open(op uint32) { c.op(byte(op), noResult) }

func (c *code) end() { c.op(byte(module.End)) }
