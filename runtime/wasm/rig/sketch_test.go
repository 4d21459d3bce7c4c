package rig_test

import (
	"testing"

	"github.com/jobhost/jobhost/runtime/module"
)

// sketch is a small module that a test writes by hand. Its functions are
// exported as f0, f1 and so on, its memory of one page as memory.
type sketch struct {
	functions []routine
	globals   []byte // types of mutable globals, exported as g0, g1 and so on
	table     uint32 // entries, the first of which are the functions
	memory    bool
	data      []module.Segment
}

type routine struct {
	params, results, locals []byte
	code                    []byte // without the end
}

// in is one instruction.
func in(op uint32, operands ...uint64) []byte {
	i := module.Instruction{Op: op, Block: module.BlockType{Index: -1}}
	if len(operands) > 0 {
		i.Immediate, i.Block.Value = operands[0], byte(operands[0])
	}
	if len(operands) > 1 {
		i.Second, i.Depths = uint32(operands[1]), []uint32{0}
	}
	return i.Append(nil)
}

// opcode returns the opcode of a name.
func opcode(t testing.TB, name string) uint32 {
	t.Helper()
	for _, prefix := range []uint32{0, 0xfc, 0xfd} {
		for n := range uint32(256) {
			if o := module.Describe(prefix<<8 | n); o != nil && o.Name == name {
				return prefix<<8 | n
			}
		}
	}
	t.Fatalf("there is no instruction %s", name)
	return 0
}

func concat(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// bytes returns the module.
func (s *sketch) bytes(t testing.TB) []byte {
	t.Helper()
	m := &module.Module{Start: -1, DataCount: -1, Data: s.data}
	for i, f := range s.functions {
		m.Types = append(m.Types, module.FuncType{Params: f.params, Results: f.results})
		m.Functions = append(m.Functions, uint32(i))
		m.Exports = append(m.Exports, module.Export{Name: "f" + string(rune('0'+i)), Index: uint32(i)})
	}
	for i, kind := range s.globals {
		g := module.Global{GlobalType: module.GlobalType{Type: kind, Mutable: true}, Init: zero(m, kind)}
		m.Globals = append(m.Globals, g)
		m.Exports = append(m.Exports, module.Export{Name: "g" + string(rune('0'+i)), Kind: module.KindGlobal, Index: uint32(i)})
	}
	if s.table > 0 {
		m.Tables = []module.Table{{Type: module.FuncRef, Limits: module.Limits{Min: s.table}}}
		all := make([]uint32, len(s.functions))
		for i := range all {
			all[i] = uint32(i)
		}
		m.Elements = []module.Element{{Type: module.FuncRef, Offset: module.Const{Op: byte(module.I32Const)}, Functions: all}}
	}
	if s.memory {
		m.Memories = []module.Limits{{Min: 1, Max: 1, HasMax: true}}
		m.Exports = append(m.Exports, module.Export{Name: "memory", Kind: module.KindMemory})
	}
	if len(s.data) > 0 {
		m.DataCount = len(s.data)
	}
	out, err := m.Encode(func(b []byte, i int) ([]byte, error) {
		f := &s.functions[i]
		b = module.AppendU32(b, uint32(len(f.locals)))
		for _, l := range f.locals {
			b = append(b, 1, l)
		}
		return append(append(b, f.code...), byte(module.End)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// zero is the first value of a global.
func zero(m *module.Module, kind byte) module.Const {
	switch kind {
	case module.I32:
		return module.Const{Op: byte(module.I32Const)}
	case module.I64:
		return module.Const{Op: byte(module.I64Const)}
	case module.F32:
		return module.Const{Op: 0x43}
	case module.F64:
		return module.Const{Op: 0x44}
	case module.V128:
		m.Bytes = append(m.Bytes, make([]byte, 16)...)
		return module.Const{Op: 0xfd, Bits: uint64(len(m.Bytes) - 16)}
	}
	return module.Const{Op: byte(module.RefNull), Bits: uint64(kind)}
}
