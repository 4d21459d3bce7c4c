package typecheck_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/typecheck"
)

// function is a module with one function (i32, f64) → (i32) that has a local of
// type v128, two globals, the first of them mutable, and a table.
func function(t *testing.T, code ...byte) *module.Module {
	t.Helper()
	m := &module.Module{
		Start: -1, DataCount: -1,
		Types:     []module.FuncType{{Params: []byte{module.I32, module.F64}, Results: []byte{module.I32}}},
		Functions: []uint32{0},
		Tables:    []module.Table{{Type: module.ExternRef, Limits: module.Limits{Min: 1}}},
		Globals: []module.Global{
			{GlobalType: module.GlobalType{Type: module.I32, Mutable: true}, Init: module.Const{Op: 0x41}},
			{GlobalType: module.GlobalType{Type: module.I64}, Init: module.Const{Op: 0x42}},
		},
	}
	wasm, err := m.Encode(func(b []byte, _ int) ([]byte, error) {
		return append(append(b, 1, 1, module.V128), append(code, byte(module.End))...), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	read, err := module.Read(wasm)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// check goes through the function; visit, if there is one, is called before each step.
func check(m *module.Module, visit func(*typecheck.Checker, *module.Instruction)) error {
	c, err := typecheck.New(m)
	if err != nil {
		return err
	}
	c.Begin(0)
	code := m.Instructions(0)
	for code.Next() {
		if visit != nil {
			visit(c, &code.Instruction)
		}
		if err := c.Step(&code.Instruction); err != nil {
			return err
		}
	}
	return code.Err()
}

// The verdicts of the whole WebAssembly test suite are in package rig. These are
// about what errors say, and where.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, want string
		at         int // the instruction, in bytes from the beginning of the code
		code       []byte
	}{
		{"an operand of another type", "an operand is f64 instead of i32", 4, []byte{0x20, 0, 0x20, 1, 0x6a}},
		{"no operand", "an operand is missing", 0, []byte{0x6a}},
		{"operands that are left over", "operands are left over at the end of a block", 4, []byte{0x20, 0, 0x20, 0}},
		{"a local beyond all", "there is no local 3", 0, []byte{0x20, 3}},
		{"a label beyond all", "there is no label 2", 0, []byte{0x0c, 2}},
		{"a function beyond all", "there is no function 1", 0, []byte{0x10, 1}},
		{"a global that is constant", "global 1 is set, which is not mutable", 2, []byte{0x42, 0, 0x24, 1}},
		{"a memory that is not there", "i32.load in a module without a memory", 2, []byte{0x41, 0, 0x28, 0, 0}},
		{"a call by a table of others' references", "table 0 has no functions to be called", 2, []byte{0x41, 0, 0x11, 0, 0}},
		{"a select of two types", "a select of i32 and f64", 6, []byte{0x20, 0, 0x20, 1, 0x20, 0, 0x1b}},
		{"a select of references without their type", "a select of references must have their type", 6, []byte{0xd0, 0x6f, 0xd0, 0x6f, 0x20, 0, 0x1b}},
		{"a select with another type", "an operand is f64 instead of v128", 6, []byte{0x20, 1, 0x20, 1, 0x20, 0, 0x1c, 1, module.V128}},
		{"an if that must have an else", "an if without an else must return what it takes", 6, []byte{0x20, 0, 0x04, module.I32, 0x20, 0, 0x0b}},
		{"an else of a block", "an else that belongs to no if", 2, []byte{0x02, 0x40, 0x05, 0x0b}},
		{"targets that take different operands", "the targets of a br_table take 0 and 1 operands", 6, []byte{0x02, 0x40, 0x20, 0, 0x20, 0, 0x0e, 1, 0, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := function(t, test.code...)
			fault, ok := errors.AsType[*typecheck.Error](check(m, nil))
			if !ok || !strings.Contains(fault.What, test.want) || fault.Offset-m.Bodies[0].Code != test.at {
				t.Errorf("the error is %v, not %q at byte %#x", fault, test.want, m.Bodies[0].Code+test.at)
			}
		})
	}
}

// TestDeadCode takes operands of any type where code is never reached.
func TestDeadCode(t *testing.T) {
	t.Parallel()
	m := function(t, 0x00, 0x6a, 0x1a, 0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0, 0x1b, 0x1a) // unreachable, i32.add, drop, f64.const, i32.const, select, drop
	var reached []bool
	err := check(m, func(c *typecheck.Checker, _ *module.Instruction) { reached = append(reached, c.Reached()) })
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range reached {
		if r != (i == 0) {
			t.Errorf("instruction %d: reached = %v", i, r)
		}
	}
}

// TestOperands asks what the next instruction can take.
func TestOperands(t *testing.T) {
	t.Parallel()
	m := function(t, 0x20, 0, 0x20, 1, 0x02, 0x40, 0x42, 0, 0x1a, 0x0b, 0x1a) // local.get 0, local.get 1, block, i64.const, drop, end, drop
	var seen []byte
	err := check(m, func(c *typecheck.Checker, _ *module.Instruction) { seen = append(seen, c.Operand(0), c.Operand(1)) })
	if err != nil {
		t.Fatal(err)
	}
	const none = typecheck.Unknown
	want := []byte{
		none, none, module.I32, none, module.F64, module.I32, // at the block
		none, none, module.I64, none, none, none, // a block begins with an empty stack
		module.F64, module.I32, module.I32, none,
	}
	if string(seen) != string(want) {
		t.Errorf("the operands are % x instead of % x", seen, want)
	}
}

// TestLocals finds parameters and declared locals.
func TestLocals(t *testing.T) {
	t.Parallel()
	c, err := typecheck.New(function(t, 0x00))
	if err != nil {
		t.Fatal(err)
	}
	c.Begin(0)
	for i, want := range []byte{module.I32, module.F64, module.V128} {
		if got, ok := c.Local(uint64(i)); got != want || !ok {
			t.Errorf("local %d is %#x (%v) instead of %#x", i, got, ok, want)
		}
	}
	if _, ok := c.Local(3); ok {
		t.Error("there is a fourth local")
	}
}
