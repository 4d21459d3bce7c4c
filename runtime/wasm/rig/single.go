package rig

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/jobhost/jobhost/runtime/module"
)

// Opcodes returns all opcodes.
func Opcodes() []uint32 { return opcodes() }

// constantCases is how many functions of [Single] have constant operands.
const constantCases = 24

// Single returns a module for one instruction. Its function f0 surrounds it
// with code that sets locals and globals of all types before and returns them
// afterwards; it takes the operands as arguments. The other functions have
// constant operands, and are left out if the instruction has none.
func Single(op uint32) ([]byte, error) {
	all := Profiles()[1]
	g := &generator{
		Rand: rand.New(rand.NewPCG(uint64(op), 4)), Profile: all,
		m: &module.Module{Start: -1, DataCount: -1},
	}
	s := &single{generator: g, opcode: op, o: module.Describe(op)}
	s.plain = g.usable(s.o)
	if s.plain {
		s.params = []byte(s.o.Pop)
		if s.o.Push != 0 {
			s.results = []byte{s.o.Push}
		}
	} else if code, ok := entities[op]; ok {
		s.params, s.results = code.params, code.results
	} else {
		return nil, fmt.Errorf("%s has no module", s.o.Name)
	}
	s.outline()
	bodies := [][]byte{s.guarded()}
	for len(bodies) < len(g.m.Functions) {
		bodies = append(bodies, s.constants())
	}
	return g.m.Encode(func(b []byte, f int) ([]byte, error) { return append(b, bodies[f]...), nil })
}

// single generates the module of one instruction.
type single struct {
	*generator
	opcode          uint32
	o               *module.Opcode
	plain           bool // the table of opcodes defines what it pops and pushes
	params, results []byte
}

func (s *single) outline() {
	guarded := append(append(s.results[:len(s.results):len(s.results)], s.Types...), s.Types...)
	s.m.Functions = append(s.m.Functions, uint32(s.typeIndex(s.params, guarded)))
	if s.plain {
		constant := uint32(s.typeIndex(nil, s.results))
		for range constantCases {
			s.m.Functions = append(s.m.Functions, constant)
		}
	}
	s.m.Memories = []module.Limits{{Min: pages, Max: pages + morePages, HasMax: true}}
	for _, t := range s.Types {
		s.m.Globals = append(s.m.Globals, module.Global{GlobalType: module.GlobalType{Type: t, Mutable: true}, Init: s.initial(t)})
	}
	s.m.Tables = []module.Table{{Type: module.FuncRef, Limits: module.Limits{Min: entries}}}
	s.segments()
	for i := range s.m.Functions {
		s.m.Exports = append(s.m.Exports, module.Export{Name: "f" + strconv.Itoa(i), Index: uint32(i)})
	}
	s.m.Exports = append(s.m.Exports, module.Export{Name: "memory", Kind: module.KindMemory})
}

// begin starts a function.
func (s *single) begin(params, results []byte) {
	s.code, s.room = nil, s.Room
	s.locals = append([]byte(nil), params...)
	s.labels = []label{{types: results}}
}

// guarded is the function with values around the instruction.
func (s *single) guarded() []byte {
	s.begin(s.params, s.m.Types[s.m.Functions[0]].Results)
	var kept []int
	for i, t := range s.Types {
		n := s.scratch(t)
		kept = append(kept, n)
		s.constant(t)
		s.at(module.LocalSet, n)
		s.constant(t)
		s.at(module.GlobalSet, i)
	}
	if s.plain {
		for i, t := range s.params {
			s.at(module.LocalGet, i)
			s.prepare(i, t)
		}
		s.finish()
	} else {
		entities[s.opcode].code(s.generator)
	}
	for _, n := range kept {
		s.at(module.LocalGet, n)
	}
	for i := range s.Types {
		s.at(module.GlobalGet, i)
	}
	return s.end(len(s.params))
}

// constants is a function with constant operands.
func (s *single) constants() []byte {
	s.begin(nil, s.results)
	for i, t := range s.params {
		s.constant(t)
		s.prepare(i, t)
	}
	s.finish()
	return s.end(0)
}

// prepare makes an operand suitable for the instruction.
func (s *single) prepare(i int, t byte) {
	if i == 0 && (s.o.Operands == module.Memory || s.o.Operands == module.MemoryLane) {
		s.i32(0xfff)
		s.op(i32And)
	}
	if showsBits(s.opcode, i) {
		s.clear(t)
	}
}

// finish generates the instruction itself.
func (s *single) finish() { s.instruction(s.opcode, s.o) }

func (s *single) end(params int) []byte {
	s.code = append(s.code, byte(module.End))
	own := s.locals[params:]
	body := module.AppendU32(nil, uint32(len(own)))
	for _, t := range own {
		body = append(module.AppendU32(body, 1), t)
	}
	return append(body, s.code...)
}

// entity is code around an instruction whose operands the table of opcodes
// doesn't define.
type entity struct {
	params, results []byte
	code            func(*generator)
}

var (
	one = []byte{module.I32}
	two = []byte{module.I32, module.I32}
)

// entities are these instructions.
var entities = map[uint32]entity{
	module.Unreachable: {code: func(g *generator) { g.op(module.Unreachable) }},
	0x01:               {code: func(g *generator) { g.op(0x01) }},
	module.Block: {two, one, func(g *generator) {
		g.at(module.LocalGet, 0)
		g.at(module.LocalGet, 1)
		g.open(module.Block, two, one)
		g.op(i32Sub)
		g.close()
	}},
	module.Loop: {two, one, func(g *generator) {
		n := g.scratch(module.I32)
		g.at(module.LocalGet, 0)
		g.open(module.Loop, one, one)
		g.at(module.LocalGet, 1)
		g.op(i32Add)
		g.at(module.LocalGet, n)
		g.i32(1)
		g.op(i32Add)
		g.at(module.LocalTee, n)
		g.i32(5)
		g.op(i32LtU)
		g.at(module.BrIf, 0)
		g.close()
	}},
	module.If:   {two, one, forked},
	module.Else: {two, one, forked},
	module.End:  {two, one, forked},
	module.Br: {two, one, func(g *generator) {
		g.open(module.Block, nil, one)
		g.at(module.LocalGet, 0)
		g.at(module.LocalGet, 1)
		g.at(module.Br, 0)
		g.close()
	}},
	module.BrIf: {two, one, func(g *generator) {
		g.open(module.Block, nil, one)
		g.at(module.LocalGet, 0)
		g.at(module.LocalGet, 1)
		g.at(module.BrIf, 0)
		g.op(i32Eqz)
		g.close()
	}},
	module.BrTable: {two, one, func(g *generator) {
		g.open(module.Block, nil, one)
		g.open(module.Block, nil, one)
		g.at(module.LocalGet, 0)
		g.at(module.LocalGet, 1)
		g.emit(module.Instruction{Op: module.BrTable, Depths: []uint32{1, 0, 0, 1, 0}})
		g.close()
		g.op(i32Eqz)
		g.close()
	}},
	module.Return: {code: func(g *generator) {
		for _, t := range g.labels[0].types {
			g.zero(t)
		}
		g.op(module.Return)
	}},
	module.Call: {code: func(g *generator) { // itself, until the fuel of tests runs out: once
		g.at(module.GlobalGet, 0)
		g.op(i32Eqz)
		g.open(module.If, nil, nil)
		g.at(module.Call, 0)
		g.dropAll(g.labels[0].types)
		g.close()
	}},
	module.CallIndirect: {two, nil, func(g *generator) {
		g.at(module.LocalGet, 0)
		g.at(module.LocalGet, 1)
		g.i32(entries - 1) // null
		g.at2(module.CallIndirect, 0, 0)
		g.dropAll(g.labels[0].types)
	}},
	module.Drop: {two, one, func(g *generator) {
		g.at(module.LocalGet, 0)
		g.at(module.LocalGet, 1)
		g.op(module.Drop)
	}},
	module.Select: {[]byte{module.I64, module.I64, module.I32}, []byte{module.I64}, func(g *generator) { g.gets(3); g.op(module.Select) }},
	module.SelectTyped: {[]byte{module.ExternRef, module.ExternRef, module.I32}, []byte{module.ExternRef}, func(g *generator) {
		g.gets(3)
		g.emit(module.Instruction{Op: module.SelectTyped, Type: module.ExternRef})
	}},
	module.LocalGet:  {two, two, func(g *generator) { g.gets(2) }},
	module.LocalSet:  {two, two, func(g *generator) { g.gets(1); g.at(module.LocalSet, 1); g.gets(2) }},
	module.LocalTee:  {two, two, func(g *generator) { g.gets(1); g.at(module.LocalTee, 1); g.at(module.LocalGet, 1) }},
	module.GlobalGet: {nil, []byte{module.I64}, func(g *generator) { g.at(module.GlobalGet, 1) }},
	module.GlobalSet: {[]byte{module.I32}, nil, func(g *generator) { g.gets(1); g.at(module.GlobalSet, 0) }},
	module.TableGet:  {one, one, func(g *generator) { g.entryOf(); g.at(module.TableGet, 0); g.op(module.RefIsNull) }},
	module.TableSet: {one, one, func(g *generator) {
		g.entryOf()
		g.at(module.RefFunc, 0)
		g.at(module.TableSet, 0)
		g.entryOf()
		g.at(module.TableGet, 0)
		g.op(module.RefIsNull)
	}},
	module.MemorySize: {nil, one, func(g *generator) { g.at(module.MemorySize, 0) }},
	module.MemoryGrow: {one, two, func(g *generator) { g.gets(1); g.at(module.MemoryGrow, 0); g.at(module.MemorySize, 0) }},
	module.I32Const:   {nil, one, func(g *generator) { g.constant(module.I32) }},
	module.I64Const:   {nil, []byte{module.I64}, func(g *generator) { g.constant(module.I64) }},
	f32Const:          {nil, []byte{module.F32}, func(g *generator) { g.constant(module.F32) }},
	f64Const:          {nil, []byte{module.F64}, func(g *generator) { g.constant(module.F64) }},
	vectorConst:       {nil, []byte{module.V128}, func(g *generator) { g.constant(module.V128) }},
	module.RefNull:    {nil, []byte{module.ExternRef}, func(g *generator) { g.zero(module.ExternRef) }},
	module.RefIsNull:  {[]byte{module.ExternRef}, one, func(g *generator) { g.gets(1); g.op(module.RefIsNull) }},
	module.RefFunc:    {nil, []byte{module.FuncRef}, func(g *generator) { g.at(module.RefFunc, 0) }},
	module.MemoryInit: {two, nil, func(g *generator) { g.i32(100); g.gets(2); g.at2(module.MemoryInit, 1, 0) }},
	module.DataDrop:   {two, nil, func(g *generator) { g.at(module.DataDrop, 1); g.i32(100); g.gets(2); g.at2(module.MemoryInit, 1, 0) }},
	module.MemoryCopy: {[]byte{module.I32, module.I32, module.I32}, nil, func(g *generator) { g.gets(3); g.at2(module.MemoryCopy, 0, 0) }},
	module.MemoryFill: {[]byte{module.I32, module.I32, module.I32}, nil, func(g *generator) { g.gets(3); g.at(module.MemoryFill, 0) }},
	module.TableInit: {two, one, func(g *generator) {
		g.i32(2)
		g.gets(2)
		g.at2(module.TableInit, 1, 0)
		g.entryOf()
		g.at(module.TableGet, 0)
		g.op(module.RefIsNull)
	}},
	module.ElemDrop: {two, nil, func(g *generator) { g.at(module.ElemDrop, 1); g.i32(2); g.gets(2); g.at2(module.TableInit, 1, 0) }},
	module.TableCopy: {[]byte{module.I32, module.I32, module.I32}, one, func(g *generator) {
		g.gets(3)
		g.at2(module.TableCopy, 0, 0)
		g.entryOf()
		g.at(module.TableGet, 0)
		g.op(module.RefIsNull)
	}},
	module.TableGrow: {one, two, func(g *generator) {
		g.at(module.RefFunc, 0)
		g.entryOf()
		g.at(module.TableGrow, 0)
		g.at(module.TableSize, 0)
	}},
	module.TableSize: {nil, one, func(g *generator) { g.at(module.TableSize, 0) }},
	module.TableFill: {two, one, func(g *generator) {
		g.entryOf()
		g.at(module.RefFunc, 0)
		g.at(module.LocalGet, 1)
		g.at(module.TableFill, 0)
		g.entryOf()
		g.at(module.TableGet, 0)
		g.op(module.RefIsNull)
	}},
}

// forked is an if with all its parts.
func forked(g *generator) {
	g.gets(2)
	g.open(module.If, one, one)
	g.i32(7)
	g.op(i32Add, module.Else, i32Eqz)
	g.close()
}

// gets pushes the first parameters.
func (g *generator) gets(n int) {
	for i := range n {
		g.at(module.LocalGet, i)
	}
}

func (g *generator) dropAll(types []byte) {
	for range types {
		g.op(module.Drop)
	}
}

// entryOf pushes the first parameter as the index of an entry, possibly out of range.
func (g *generator) entryOf() {
	g.at(module.LocalGet, 0)
	g.i32(15)
	g.op(i32And)
}
