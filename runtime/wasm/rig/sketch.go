package rig

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/jobhost/jobhost/runtime/module"
)

// Sketch is a small module that a test writes by hand. Its functions are
// exported as f0, f1 and so on, its memory of one page as memory.
type Sketch struct {
	Functions []Routine
	Globals   []byte // types of mutable globals, exported as g0, g1 and so on
	Table     uint32 // entries, the first of which are the functions
	Memory    bool
	Data      []module.Segment
}

// Routine is a function of a [Sketch].
type Routine struct {
	Name                    string // under which it is exported; "" = f and its index
	Params, Results, Locals []byte
	Code                    []byte // without the end
}

// In is one instruction.
func In(op uint32, operands ...uint64) []byte {
	i := module.Instruction{Op: op, Block: module.BlockType{Index: -1}}
	if len(operands) > 0 {
		i.Immediate, i.Block.Value = operands[0], byte(operands[0])
	}
	if len(operands) > 1 {
		i.Second, i.Depths = uint32(operands[1]), []uint32{0}
	}
	return i.Append(nil)
}

// Opcode returns the opcode with a name.
func Opcode(name string) (uint32, error) {
	for _, op := range opcodes() {
		if module.Describe(op).Name == name {
			return op, nil
		}
	}
	return 0, fmt.Errorf("there is no instruction %s", name)
}

// Bytes returns the module.
func (s *Sketch) Bytes() ([]byte, error) {
	m := &module.Module{Start: -1, DataCount: -1, Data: s.Data}
	for i, f := range s.Functions {
		name := f.Name
		if name == "" {
			name = "f" + strconv.Itoa(i)
		}
		m.Types = append(m.Types, module.FuncType{Params: f.Params, Results: f.Results})
		m.Functions = append(m.Functions, uint32(i))
		m.Exports = append(m.Exports, module.Export{Name: name, Index: uint32(i)})
	}
	for i, kind := range s.Globals {
		g := module.Global{GlobalType: module.GlobalType{Type: kind, Mutable: true}, Init: zero(m, kind)}
		m.Globals = append(m.Globals, g)
		m.Exports = append(m.Exports, module.Export{Name: "g" + strconv.Itoa(i), Kind: module.KindGlobal, Index: uint32(i)})
	}
	if s.Table > 0 {
		m.Tables = []module.Table{{Type: module.FuncRef, Limits: module.Limits{Min: s.Table}}}
		all := make([]uint32, len(s.Functions))
		for i := range all {
			all[i] = uint32(i)
		}
		m.Elements = []module.Element{{Type: module.FuncRef, Offset: module.Const{Op: byte(module.I32Const)}, Functions: all}}
	}
	if s.Memory {
		m.Memories = []module.Limits{{Min: 1, Max: 1, HasMax: true}}
		m.Exports = append(m.Exports, module.Export{Name: "memory", Kind: module.KindMemory})
	}
	if len(s.Data) > 0 {
		m.DataCount = len(s.Data)
	}
	return m.Encode(s.body)
}

// body appends the body of a function.
func (s *Sketch) body(b []byte, i int) ([]byte, error) {
	f := &s.Functions[i]
	b = module.AppendU32(b, uint32(len(f.Locals)))
	for _, l := range f.Locals {
		b = append(b, 1, l)
	}
	return append(slices.Concat(b, f.Code), byte(module.End)), nil
}

// zero is the initial value of a global.
func zero(m *module.Module, kind byte) module.Const {
	switch kind {
	case module.I32:
		return module.Const{Op: byte(module.I32Const)}
	case module.I64:
		return module.Const{Op: byte(module.I64Const)}
	case module.F32:
		return module.Const{Op: byte(f32Const)}
	case module.F64:
		return module.Const{Op: byte(f64Const)}
	case module.V128:
		m.Bytes = append(m.Bytes, make([]byte, 16)...)
		return module.Const{Op: 0xfd, Bits: uint64(len(m.Bytes) - 16)}
	}
	return module.Const{Op: byte(module.RefNull), Bits: uint64(kind)}
}
