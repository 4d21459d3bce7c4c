package rig

import (
	"strings"

	"github.com/jobhost/jobhost/runtime/module"
)

// The bits of a NaN are up to the engine, so programs must not show them.
// Scalar NaNs become 0 where their bits would become visible: in memory, in
// integers, in vectors, and where copysign takes their sign. Vectors show their
// bits to each instruction, so lanes that a float instruction turns into NaNs
// become 0 at once, in the width of that instruction: a 64-bit NaN need not be
// one when it is viewed as two 32-bit lanes.

// clearer returns the comparison that finds NaNs in the result of a vector
// instruction; 0 = it creates none.
func clearer(op uint32) uint32 {
	o := module.Describe(op)
	shape, name, _ := strings.Cut(o.Name, ".")
	if o.Push != module.V128 || !module.IsVector(op) {
		return 0
	}
	switch name {
	case "eq", "ne", "lt", "gt", "le", "ge", "splat", "replace_lane", "abs", "neg":
		return 0 // masks, and instructions that only move bits
	}
	switch shape {
	case "f32x4":
		return f32x4Eq
	case "f64x2":
		return f64x2Eq
	}
	return 0
}

// showsBits reports whether an instruction exposes the bits of an operand that
// is a scalar float.
func showsBits(op uint32, operand int) bool {
	switch name := module.Describe(op).Name; {
	case op == f32Copysign || op == f64Copysign:
		return operand == 1
	case strings.Contains(name, "reinterpret"), strings.HasSuffix(name, ".store"),
		strings.HasSuffix(name, ".splat"), strings.HasSuffix(name, ".replace_lane"):
		return true
	}
	return false
}

// canonical maps all NaNs of a result to the same bits.
func canonical(t byte, bits uint64) uint64 {
	if t == module.I32 || t == module.F32 {
		bits &= 0xffff_ffff // the other half is left over from something else
	}
	switch {
	case t == module.F32 && bits&0x7f80_0000 == 0x7f80_0000 && bits&0x007f_ffff != 0:
		return 0x7fc0_0000
	case t == module.F64 && bits&0x7ff0_0000_0000_0000 == 0x7ff0_0000_0000_0000 && bits&0x000f_ffff_ffff_ffff != 0:
		return 0x7ff8_0000_0000_0000
	case t == module.FuncRef && bits != 0:
		return 1 // an address
	}
	return bits
}
