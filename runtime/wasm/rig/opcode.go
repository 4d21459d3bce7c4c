package rig

import "github.com/jobhost/jobhost/runtime/module"

// Opcodes that the generator uses directly.
const (
	i32Load16U    uint32 = 0x2f
	f64Load       uint32 = 0x2b
	i32Store      uint32 = 0x36
	f32Const      uint32 = 0x43
	f64Const      uint32 = 0x44
	i32Eqz        uint32 = 0x45
	i32LtU        uint32 = 0x49
	i32Add        uint32 = 0x6a
	i32Sub        uint32 = 0x6b
	i32DivS       uint32 = 0x6d
	i32RemU       uint32 = 0x70
	i32And        uint32 = 0x71
	i32Or         uint32 = 0x72
	i32Shl        uint32 = 0x74
	i64Sub        uint32 = 0x7d
	i64DivS       uint32 = 0x7f
	i64RemU       uint32 = 0x82
	i64And        uint32 = 0x83
	i64Or         uint32 = 0x84
	f32Eq         uint32 = 0x5b
	f64Eq         uint32 = 0x61
	f64Lt         uint32 = 0x63
	f32Copysign   uint32 = 0x98
	f64Copysign   uint32 = 0xa6
	i32TruncF32S  uint32 = 0xa8
	i64TruncF64U  uint32 = 0xb1
	i64ExtendI32U uint32 = 0xad
	f32ConvertI32 uint32 = 0xb2 // signed
	f64ConvertI32 uint32 = 0xb7 // signed
	i32OfF32      uint32 = 0xbc
	i64OfF64      uint32 = 0xbd
	f32OfI32      uint32 = 0xbe
	f64OfI64      uint32 = 0xbf
	vectorConst   uint32 = 0xfd0c
	f32x4Eq       uint32 = 0xfd41
	f64x2Eq       uint32 = 0xfd47
	vectorAnd     uint32 = 0xfd4e
)

// opcodes returns all opcodes in the table of package module.
func opcodes() []uint32 {
	var all []uint32
	for _, prefix := range []uint32{0, 0xfc, 0xfd} {
		for n := range uint32(256) {
			if op := prefix<<8 | n; module.Describe(op) != nil {
				all = append(all, op)
			}
		}
	}
	return all
}

// ordered returns the integer comparisons, including those for equality, by the
// type of their operands.
func ordered(t byte) (first, last uint32) {
	if t == module.I64 {
		return 0x51, 0x5a // i64.eq to i64.ge_u
	}
	return 0x46, 0x4f // i32.eq to i32.ge_u
}
