package rig_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// known is what wazero 1.12's compilers get wrong: modules one of which at
// least is wrong as it is, and none when it is rewritten.
type known struct {
	name    string
	arch    string // on which it is wrong
	modules [][]byte
}

// TestKnownFaults shows that the compiler is still wrong, so that a version of
// wazero that isn't is noticed, and that the rewrite is right all the same.
func TestKnownFaults(t *testing.T) {
	t.Parallel()
	for _, k := range append(maskedFaults(t), pressedFaults(t)...) {
		t.Run(strings.ReplaceAll(k.name, " ", "_"), func(t *testing.T) {
			bench := rig.NewBench(t.Context())
			defer bench.Close(t.Context())
			wrong := 0
			for i, wasm := range k.modules {
				o, err := bench.Run(t.Context(), wasm, uint64(i))
				if err != nil {
					t.Fatalf("%v\n%s", err, rig.Text(wasm))
				}
				if o.Rewritten != "" {
					t.Errorf("module %d: wrong when it is rewritten: %s\n%s", i, o.Rewritten, rig.Text(wasm))
				}
				if o.Plain != "" {
					wrong++
				}
			}
			if want := k.arch == runtime.GOARCH; (wrong > 0) != want {
				t.Errorf("%d of %d modules are wrong as they are: if wazero is mended, the rewrite need not avoid this any more", wrong, len(k.modules))
			}
		})
	}
}

// maskedFaults are branches on a comparison of 0 with what an and leaves. The
// compiler makes one instruction of the two, and takes the wrong way: on amd64
// when the 0 is on the left, on arm64 for comparisons without a sign when it is
// on the right, and for those with one when it is on the left.
func maskedFaults(t *testing.T) []known {
	var all []known
	for _, kind := range []byte{module.I32, module.I64} {
		prefix, and, zero, minus := "i32", in(0x71), in(module.I32Const), in(module.I32Const, ^uint64(0))
		if kind == module.I64 {
			prefix, and, zero, minus = "i64", in(0x83), in(module.I64Const), in(module.I64Const, ^uint64(0))
		}
		for _, compare := range []string{"lt", "gt", "le", "ge"} {
			for _, sign := range []string{"s", "u"} {
				op := in(opcode(t, fmt.Sprintf("%s.%s_%s", prefix, compare, sign)))
				masked := concat(in(module.LocalGet, 0), minus, and)
				left, right := concat(zero, masked, op), concat(masked, zero, op)
				for _, branch := range []string{"if", "br_if"} {
					name := fmt.Sprintf("%s.%s_%s and %s, 0 on the ", prefix, compare, sign, branch)
					leftArch, rightArch := "amd64", "arm64"
					if sign == "s" && runtime.GOARCH == "arm64" {
						leftArch, rightArch = "arm64", ""
					}
					all = append(all,
						known{name + "left", leftArch, branches(t, kind, branch, left)},
						known{name + "right", rightArch, branches(t, kind, branch, right)})
				}
			}
		}
	}
	return all
}

// branches has modules that return 1 if a condition holds and 0 otherwise. The
// condition is asked for several arguments, by as many functions.
func branches(t *testing.T, kind byte, branch string, condition []byte) [][]byte {
	one, zero := in(module.I32Const, 1), in(module.I32Const)
	code := concat(condition, in(module.If, uint64(module.I32)), one, in(module.Else), zero, in(module.End))
	if branch == "br_if" {
		code = concat(in(module.Block, uint64(module.I32)), one, condition, in(module.BrIf), in(module.Drop), zero, in(module.End))
	}
	asked := routine{params: []byte{kind}, results: []byte{module.I32}, code: code}
	s := sketch{functions: []routine{asked}}
	for _, arg := range []uint64{0, 1, ^uint64(0), 1 << 31, 1 << 63} {
		constant := in(module.I64Const, arg)
		if kind == module.I32 {
			constant = in(module.I32Const, uint64(int64(int32(arg))))
		}
		s.functions = append(s.functions, routine{results: []byte{module.I32}, code: concat(constant, in(module.Call, 0))})
	}
	return [][]byte{s.bytes(t)}
}

// pressedFaults are instructions that change a register of a temporary value,
// of which the compiler then reloads an older copy, when many values that loops
// use seem to be alive.
func pressedFaults(t *testing.T) []known {
	var all []known
	add := func(op uint32, name, pop string, push byte) {
		k := known{name: name + " among many floats", arch: "amd64"}
		for kept := 14; kept <= 16; kept++ {
			for from := range 4 {
				if strings.Contains(name, ".min") || strings.Contains(name, ".max") {
					from = max(from, 1) // arguments may be NaNs
				}
				k.modules = append(k.modules, pressed(t, op, pop, push, kept, operands(from)))
			}
		}
		all = append(all, k)
	}
	for _, name := range []string{
		"i8x16.shuffle", "i8x16.splat", "v128.load8_splat", "v128.bitselect", "i8x16.popcnt", "i8x16.shr_s", "i64x2.mul",
		"i64x2.extmul_low_i32x4_s", "i64x2.extmul_high_i32x4_s", "i64x2.extmul_low_i32x4_u", "i64x2.extmul_high_i32x4_u",
		"f32x4.min", "f32x4.max", "f64x2.min", "f64x2.max", "i32x4.trunc_sat_f32x4_s", "i32x4.trunc_sat_f32x4_u",
		"i32x4.trunc_sat_f64x2_s_zero", "i32x4.trunc_sat_f64x2_u_zero", "f32x4.convert_i32x4_u", "f64x2.convert_low_i32x4_u",
		"f64x2.replace_lane", "f32.copysign", "f64.copysign",
	} {
		op := opcode(t, name)
		add(op, name, module.Describe(op).Pop, module.Describe(op).Push)
	}
	for _, kind := range []byte{module.F32, module.F64, module.V128} {
		add(module.Select, fmt.Sprintf("select of 0x%x", kind), string([]byte{kind, kind, module.I32}), kind)
	}
	return all
}

// operands says where the operands of an instruction come from.
type operands int

const (
	fromParameters operands = iota
	fromConstants
	fromMemory
	fromBefore // the loops, so that they may be in memory again
)

// pressed is a module with one instruction behind loops in a row, each of which
// uses a float. The floats are not used after that.
func pressed(t *testing.T, op uint32, pop string, push byte, kept int, from operands) []byte {
	f := routine{params: []byte(pop), results: []byte{push}, locals: []byte(strings.Repeat("\x7c", kept) + pop)}
	load := func(i int, kind byte) []byte {
		loads := map[byte]uint32{module.I64: 0x29, module.F32: 0x2a, module.F64: 0x2b, module.V128: 0xfd00}
		if kind == module.I32 { // conditions, addresses and lanes, which are 0 most of the time
			return concat(in(module.LocalGet, uint64(i)), in(0x45))
		}
		return concat(in(module.I32Const, uint64(16*i)), in(loads[kind]))
	}
	early := len(pop) + kept
	for i, kind := range []byte(pop) {
		if from == fromBefore {
			f.code = append(f.code, concat(load(i, kind), in(module.LocalSet, uint64(early+i)))...)
		}
	}
	for i := range kept {
		n := uint64(len(pop) + i)
		f.code = append(f.code, concat(
			in(module.I32Const, uint64(8*i)), in(0x2b), in(module.LocalSet, n), // f64.load
			in(module.Loop, 0x40), in(module.LocalGet, n), in(module.LocalGet, n), in(0x63), in(module.BrIf), in(module.End))...) // f64.lt
	}
	for i, kind := range []byte(pop) {
		switch from {
		case fromConstants:
			f.code = append(f.code, some(kind)...)
		case fromMemory:
			f.code = append(f.code, load(i, kind)...)
		case fromBefore:
			f.code = append(f.code, in(module.LocalGet, uint64(early+i))...)
		default:
			f.code = append(f.code, in(module.LocalGet, uint64(i))...)
		}
	}
	pressed := module.Instruction{Op: op, Bytes: []byte("\x00\x11\x02\x13\x04\x05\x16\x07\x08\x19\x0a\x0b\x0c\x0d\x0e\x1f")}
	f.code = pressed.Append(f.code)
	data := module.Segment{Offset: module.Const{Op: byte(module.I32Const)}}
	for i := range 64 { // floats of either width, none of them a NaN
		data.Init = append(data.Init, byte(7*i), byte(13*i), byte(129*i), 0x40+byte(i%3)|byte(i%2)<<7)
	}
	s := sketch{functions: []routine{f}, memory: true, data: []module.Segment{data}}
	return s.bytes(t)
}

// some is a constant.
func some(kind byte) []byte {
	switch kind {
	case module.I32:
		return in(module.I32Const, 3)
	case module.I64:
		return in(module.I64Const, 5)
	case module.F32:
		return in(0x43, 0x40400000)
	case module.F64:
		return in(0x44, 0xc014000000000000)
	}
	v := module.Instruction{Op: 0xfd0c, Bytes: []byte("\x01\x02\x83\x04\x85\x06\x07\x08\x09\x0a\x8b\x0c\x0d\x0e\x0f\x10")}
	return v.Append(nil)
}

// TestTypedSelect shows a module that plain wazero takes though its validator and
// its compiler read it differently: to the first, 0x63 and 0x1a are one type, to
// the second 0x1a is a drop. Ours must go on refusing it.
func TestTypedSelect(t *testing.T) {
	t.Parallel()
	// Behind a return, so that what the compiler makes of it does no harm.
	code := concat(in(module.I32Const, 1), in(module.Return), []byte{0x1c, 1, 0x63, 0x1a}, in(module.Drop), in(module.I32Const))
	s := sketch{functions: []routine{{results: []byte{module.I32}, code: code}}}
	for range 0x1a {
		s.functions = append(s.functions, routine{}) // for their types
	}
	wasm := s.bytes(t)
	if _, err := rig.Check(wasm); err == nil || !strings.Contains(err.Error(), "value type 0x63 is unknown") {
		t.Errorf("it is not refused for its type: %v", err)
	}
	r := rig.NewRuntime(t.Context(), rig.Compiled)
	defer r.Close(t.Context())
	if err := survive(func() (wazero.CompiledModule, error) { return r.CompileModule(t.Context(), wasm) }); err != nil {
		t.Errorf("wazero refuses it now, which it did not in 1.12: %v", err)
	}
}

// survive turns a panic of the compiler into an error.
func survive(compile func() (wazero.CompiledModule, error)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the compiler panicked: %v", p)
		}
	}()
	_, err = compile()
	return err
}
