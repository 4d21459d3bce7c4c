package rig

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/jobhost/jobhost/runtime/module"
)

// Fault is something that wazero 1.12's compilers get wrong.
type Fault struct {
	Name string
	Arch string // on which it occurs
	// Sketches are modules, at least one of which gives a wrong result unchanged,
	// and none when it is rewritten.
	Sketches []Sketch
}

// KnownFaults returns the known faults.
func KnownFaults() ([]Fault, error) {
	masked, err := maskedFaults()
	if err != nil {
		return nil, err
	}
	pressed, err := pressedFaults()
	return append(masked, pressed...), err
}

// maskedFaults are branches on a comparison of 0 with the result of an and. The
// compiler merges the two into one instruction, and takes the wrong branch: on
// amd64 when the 0 is on the left, on arm64 for unsigned comparisons when it is
// on the right, and for signed ones when it is on the left.
func maskedFaults() ([]Fault, error) {
	var all []Fault
	for _, kind := range []byte{module.I32, module.I64} {
		prefix, and, zero, minus := "i32", In(i32And), In(module.I32Const), In(module.I32Const, ^uint64(0))
		if kind == module.I64 {
			prefix, and, zero, minus = "i64", In(i64And), In(module.I64Const), In(module.I64Const, ^uint64(0))
		}
		for _, compare := range []string{"lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"} {
			code, err := Opcode(prefix + "." + compare)
			if err != nil {
				return nil, err
			}
			masked := slices.Concat(In(module.LocalGet, 0), minus, and)
			left, right := slices.Concat(zero, masked, In(code)), slices.Concat(masked, zero, In(code))
			for _, branch := range []string{"if", "br_if"} {
				name := fmt.Sprintf("%s.%s and %s, 0 on the ", prefix, compare, branch)
				leftArch, rightArch := "amd64", "arm64"
				if strings.HasSuffix(compare, "_s") && runtime.GOARCH == "arm64" {
					leftArch, rightArch = "arm64", ""
				}
				all = append(all,
					Fault{name + "left", leftArch, []Sketch{branches(kind, branch, left)}},
					Fault{name + "right", rightArch, []Sketch{branches(kind, branch, right)}})
			}
		}
	}
	return all, nil
}

// branches returns a module that returns 1 if a condition holds and 0 otherwise. The condition
// is evaluated for several arguments, by as many functions.
func branches(kind byte, branch string, condition []byte) Sketch {
	one, zero := In(module.I32Const, 1), In(module.I32Const)
	code := slices.Concat(condition, In(module.If, uint64(module.I32)), one, In(module.Else), zero, In(module.End))
	if branch == "br_if" {
		code = slices.Concat(In(module.Block, uint64(module.I32)), one, condition, In(module.BrIf), In(module.Drop), zero, In(module.End))
	}
	asked := Routine{Params: []byte{kind}, Results: []byte{module.I32}, Code: code}
	s := Sketch{Functions: []Routine{asked}}
	for _, arg := range []uint64{0, 1, ^uint64(0), 1 << 31, 1 << 63} {
		constant := In(module.I64Const, arg)
		if kind == module.I32 {
			constant = In(module.I32Const, uint64(int64(int32(arg))))
		}
		s.Functions = append(s.Functions, Routine{Results: []byte{module.I32}, Code: slices.Concat(constant, In(module.Call, 0))})
	}
	return s
}

// pressedFaults are instructions that change a register of a temporary value,
// of which the compiler then reloads an older copy, when many values used by
// loops seem to be live.
func pressedFaults() ([]Fault, error) {
	var all []Fault
	add := func(op uint32, name, pop string, push byte) {
		fault := Fault{Name: name + " among many floats", Arch: "amd64"}
		for kept := 14; kept <= 16; kept++ {
			for from := range operands(4) {
				if strings.Contains(name, ".min") || strings.Contains(name, ".max") {
					from = max(from, fromConstants) // arguments may be NaNs
				}
				fault.Sketches = append(fault.Sketches, pressed(op, pop, push, kept, from))
			}
		}
		all = append(all, fault)
	}
	for _, name := range []string{
		"i8x16.shuffle", "i8x16.splat", "v128.load8_splat", "v128.bitselect", "i8x16.popcnt", "i8x16.shr_s", "i64x2.mul",
		"i64x2.extmul_low_i32x4_s", "i64x2.extmul_high_i32x4_s", "i64x2.extmul_low_i32x4_u", "i64x2.extmul_high_i32x4_u",
		"f32x4.min", "f32x4.max", "f64x2.min", "f64x2.max", "i32x4.trunc_sat_f32x4_s", "i32x4.trunc_sat_f32x4_u",
		"i32x4.trunc_sat_f64x2_s_zero", "i32x4.trunc_sat_f64x2_u_zero", "f32x4.convert_i32x4_u", "f64x2.convert_low_i32x4_u",
		"f64x2.replace_lane", "f32.copysign", "f64.copysign",
	} {
		op, err := Opcode(name)
		if err != nil {
			return nil, err
		}
		add(op, name, module.Describe(op).Pop, module.Describe(op).Push)
	}
	for _, kind := range []byte{module.F32, module.F64, module.V128} {
		add(module.Select, fmt.Sprintf("select of 0x%x", kind), string([]byte{kind, kind, module.I32}), kind)
	}
	return all, nil
}

// operands says where the operands of an instruction come from.
type operands int

const (
	fromParameters operands = iota
	fromConstants
	fromMemory
	fromBefore // the loops, so that they may be spilled to memory again
)

// pressed returns a module with one instruction after a series of loops, each
// of which uses a float. The floats are not used after that.
func pressed(op uint32, pop string, push byte, kept int, from operands) Sketch {
	f := Routine{Params: []byte(pop), Results: []byte{push}, Locals: []byte(strings.Repeat("\x7c", kept) + pop)}
	early := len(pop) + kept
	for i, kind := range []byte(pop) {
		if from == fromBefore {
			f.add(loaded(i, kind), In(module.LocalSet, uint64(early+i)))
		}
	}
	for i := range kept {
		n := uint64(len(pop) + i)
		f.add(
			In(module.I32Const, uint64(8*i)), In(f64Load), In(module.LocalSet, n),
			In(module.Loop, 0x40), In(module.LocalGet, n), In(module.LocalGet, n), In(f64Lt), In(module.BrIf), In(module.End))
	}
	for i, kind := range []byte(pop) {
		switch from {
		case fromConstants:
			f.add(some(kind))
		case fromMemory:
			f.add(loaded(i, kind))
		case fromBefore:
			f.add(In(module.LocalGet, uint64(early+i)))
		default:
			f.add(In(module.LocalGet, uint64(i)))
		}
	}
	f.Code = (&module.Instruction{Op: op, Bytes: []byte("\x00\x11\x02\x13\x04\x05\x16\x07\x08\x19\x0a\x0b\x0c\x0d\x0e\x1f")}).Append(f.Code)
	return Sketch{Functions: []Routine{f}, Memory: true, Data: floats()}
}

func (f *Routine) add(code ...[]byte) { f.Code = append(f.Code, slices.Concat(code...)...) }

// loaded is an operand from memory, at index i.
func loaded(i int, kind byte) []byte {
	loads := map[byte]uint32{module.I64: 0x29, module.F32: 0x2a, module.F64: f64Load, module.V128: 0xfd00}
	if kind == module.I32 { // conditions, addresses and lanes, which are mostly 0
		return slices.Concat(In(module.LocalGet, uint64(i)), In(i32Eqz))
	}
	return slices.Concat(In(module.I32Const, uint64(16*i)), In(loads[kind]))
}

// floats returns 256 bytes for the beginning of memory that are floats of
// either width, none of them a NaN.
func floats() []module.Segment {
	data := module.Segment{Offset: module.Const{Op: byte(module.I32Const)}}
	for i := range 64 {
		data.Init = append(data.Init, byte(7*i), byte(13*i), byte(129*i), 0x40+byte(i%3)|byte(i%2)<<7)
	}
	return []module.Segment{data}
}

// some returns a constant.
func some(kind byte) []byte {
	switch kind {
	case module.I32:
		return In(module.I32Const, 3)
	case module.I64:
		return In(module.I64Const, 5)
	case module.F32:
		return In(f32Const, 0x40400000)
	case module.F64:
		return In(f64Const, 0xc014000000000000)
	}
	v := module.Instruction{Op: vectorConst, Bytes: []byte("\x01\x02\x83\x04\x85\x06\x07\x08\x09\x0a\x8b\x0c\x0d\x0e\x0f\x10")}
	return v.Append(nil)
}
