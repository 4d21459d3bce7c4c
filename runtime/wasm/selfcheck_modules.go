package wasm

import (
	"encoding/binary"

	"github.com/jobhost/jobhost/runtime/module"
)

// selfCheck is a small module that some version of wazero's compiler gets wrong
// unless it is rewritten. Its export f takes an i32.
type selfCheck struct {
	name      string
	wasm      []byte
	arg, want uint64
}

// selfChecks are modules for what the rewrite must avoid: on amd64 the first two,
// on arm64 the others. All must give correct results on all machines.
func selfChecks() []selfCheck {
	return []selfCheck{
		{name: "a branch on 0 less than an and", wasm: checkAnd, arg: 1, want: 1},
		{name: "copysign among many floats", wasm: checkCopysign(), arg: 39, want: 39},
		{name: "a branch on an and greater than 0, without a sign", wasm: checkAndRight, arg: 1, want: 1},
		{name: "a remainder among many numbers", wasm: checkRemainder(), arg: 39, want: 4},
		{name: "the bits of a byte with a sign", wasm: checkPopcnt, arg: 0xff, want: 32},
	}
}

// checkAnd is
//
//	(func (export "f") (param i32) (result i64)
//		(if (result i64) (i32.lt_u (i32.const 0) (i32.and (local.get 0) (i32.const 7)))
//			(then (i64.const 1)) (else (i64.const 0))))
var checkAnd = checkModule(nil, []byte{
	0x41, 0, 0x20, 0, 0x41, 7, 0x71, 0x49, 0x04, 0x7e, 0x42, 1, 0x05, 0x42, 0, 0x0b,
})

// checkAndRight is the same with
//
//	(i32.gt_u (i32.and (local.get 0) (i32.const 7)) (i32.const 0))
var checkAndRight = checkModule(nil, []byte{
	0x20, 0, 0x41, 7, 0x71, 0x41, 0, 0x4b, 0x04, 0x7e, 0x42, 1, 0x05, 0x42, 0, 0x0b,
})

// checkPopcnt is
//
//	(func (export "f") (param i32) (result i64)
//		(i32.store8 (i32.const 8) (local.get 0))
//		(i64.extend_i32_u (i32.popcnt (i32.load8_s (i32.const 8)))))
var checkPopcnt = checkModule(nil, []byte{
	0x41, 8, 0x20, 0, 0x3a, 0, 0, 0x41, 8, 0x2c, 0, 0, 0x69, 0xad,
})

// manyFloats and manyNumbers are more than there are registers.
const (
	manyFloats  = 15
	manyNumbers = 26
)

// checkCopysign is, with 15 locals from 1 on,
//
//	(func (export "f") (param i32) (result i64) (local f64 …)
//		(local.set 1 (f64.convert_i32_s (local.get 0)))
//		(loop (br_if 0 (f64.lt (local.get 1) (local.get 1))))
//		… the same for each of the others …
//		(i64.trunc_f64_s (f64.copysign (f64.neg (f64.convert_i32_s (local.get 0))) (f64.const 40.5))))
func checkCopysign() []byte {
	var code []byte
	for n := byte(1); n <= manyFloats; n++ {
		code = append(code, 0x20, 0, 0xb7, 0x21, n, 0x03, 0x40, 0x20, n, 0x20, n, 0x63, 0x0d, 0, 0x0b)
	}
	code = append(code, 0x20, 0, 0xb7, 0x9a, 0x44, 0, 0, 0, 0, 0, 0x40, 0x44, 0x40, 0xa6, 0xb0)
	return checkModule([]byte{manyFloats, module.F64}, code)
}

// checkRemainder is, with 26 locals from 1 on,
//
//	(func (export "f") (param i32) (result i64) (local i64 …)
//		(local.set 1 (i64.extend_i32_u (local.get 0)))
//		(loop (br_if 0 (i64.lt_s (local.get 1) (local.get 1))))
//		… the same for each of the others …
//		(i64.extend_i32_u (i32.rem_s (local.get 0) (i32.const 7))))
func checkRemainder() []byte {
	var code []byte
	for n := byte(1); n <= manyNumbers; n++ {
		code = append(code, 0x20, 0, 0xad, 0x21, n, 0x03, 0x40, 0x20, n, 0x20, n, 0x53, 0x0d, 0, 0x0b)
	}
	code = append(code, 0x20, 0, 0x41, 7, 0x6f, 0xad)
	return checkModule([]byte{manyNumbers, module.I64}, code)
}

// checkModule builds a module with one function (i32) → (i64) and one page of memory.
func checkModule(locals, code []byte) []byte {
	body := []byte{byte(len(locals) / 2)}
	body = append(append(append(body, locals...), code...), byte(module.End))
	body = module.AppendSized([]byte{1}, body)
	b := append([]byte(module.Header),
		1, 6, 1, 0x60, 1, module.I32, 1, module.I64,
		3, 2, 1, 0,
		5, 3, 1, 0, 1,
		7, 5, 1, 1, 'f', 0, 0,
		10)
	return append(binary.AppendUvarint(b, uint64(len(body))), body...)
}
