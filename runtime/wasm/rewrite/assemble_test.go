package rewrite_test

import (
	"encoding/binary"
	"strconv"

	"github.com/jobhost/jobhost/runtime/module"
)

// The types of the functions of an assembly, by their indices.
const (
	action  = iota // () → ()
	binary2        // (i32, i32) → i32
	unary          // (i32) → i32
	pairing        // () → (i32, i32), and of blocks
)

var types = []byte{
	4,
	0x60, 0, 0,
	0x60, 2, module.I32, module.I32, 1, module.I32,
	0x60, 1, module.I32, 1, module.I32,
	0x60, 0, 2, module.I32, module.I32,
}

// assembly is a module that tests write by hand. Everything in it is exported:
// functions as f0, f1, …, globals as g0, …, the memory as memory.
type assembly struct {
	functions []routine
	globals   []byte // the types; they begin at 0 and are mutable
	pages     int    // −1 = no memory
	most      int    // pages
	table     int    // entries, the first of which are the functions
	empty     bool   // or none of them is
	data      [][]byte
	offsets   []int // of data; −1 = passive
	start     int   // −1 = none
	custom    []byte
}

type routine struct {
	kind   byte // the type
	locals int  // of type i32
	code   []byte
}

func section(id byte, content []byte) []byte {
	return append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...)
}

func text(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }

// leb returns a signed number.
func leb(v int64) []byte {
	var b []byte
	for {
		x := byte(v & 0x7f)
		v >>= 7
		if v == 0 && x&0x40 == 0 || v == -1 && x&0x40 != 0 {
			return append(b, x)
		}
		b = append(b, x|0x80)
	}
}

func uleb(v int) []byte { return binary.AppendUvarint(nil, uint64(v)) }

// i32 returns a constant instruction.
func i32(v int32) []byte { return append([]byte{byte(module.I32Const)}, leb(int64(v))...) }

func concat(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func (a *assembly) bytes() []byte {
	b := append([]byte(module.Header), section(module.SectionType, types)...)
	kinds, bodies := uleb(len(a.functions)), uleb(len(a.functions))
	exports, exported := []byte(nil), 0
	export := func(name string, kind byte, index int) {
		exported++
		exports = append(exports, concat(text(name), []byte{kind}, uleb(index))...)
	}
	elements := []byte{1, 0, byte(module.I32Const), 0, byte(module.End)}
	elements = append(elements, uleb(len(a.functions))...)
	for i, f := range a.functions {
		kinds = append(kinds, f.kind)
		body := concat([]byte{1}, uleb(f.locals), []byte{module.I32}, f.code, []byte{byte(module.End)})
		bodies = append(bodies, concat(uleb(len(body)), body)...)
		elements = append(elements, uleb(i)...)
		export("f"+strconv.Itoa(i), module.KindFunction, i)
	}
	b = append(b, section(module.SectionFunction, kinds)...)
	if a.table > 0 {
		b = append(b, section(module.SectionTable, concat([]byte{1, module.FuncRef, 0}, uleb(a.table)))...)
	}
	if a.pages >= 0 {
		b = append(b, section(module.SectionMemory, concat([]byte{1, 1}, uleb(a.pages), uleb(max(a.most, a.pages))))...)
		export("memory", module.KindMemory, 0)
	}
	globals := uleb(len(a.globals))
	for i, t := range a.globals {
		zero := map[byte][]byte{
			module.I32: {byte(module.I32Const), 0}, module.I64: {byte(module.I64Const), 0},
			module.F64: {0x44, 0, 0, 0, 0, 0, 0, 0, 0}, module.FuncRef: {byte(module.RefNull), module.FuncRef},
		}[t]
		globals = append(globals, concat([]byte{t, 1}, zero, []byte{byte(module.End)})...)
		export("g"+strconv.Itoa(i), module.KindGlobal, i)
	}
	b = append(b, section(module.SectionGlobal, globals)...)
	b = append(b, section(module.SectionExport, concat(uleb(exported), exports))...)
	if a.start >= 0 {
		b = append(b, section(module.SectionStart, uleb(a.start))...)
	}
	if a.table > 0 && !a.empty {
		b = append(b, section(module.SectionElement, elements)...)
	}
	if len(a.data) > 0 {
		b = append(b, section(module.SectionDataCount, uleb(len(a.data)))...)
	}
	b = append(b, section(module.SectionCode, bodies)...)
	data := uleb(len(a.data))
	for i, init := range a.data {
		mode := []byte{1}
		if a.offsets[i] >= 0 {
			mode = concat([]byte{0}, i32(int32(a.offsets[i])), []byte{byte(module.End)})
		}
		data = append(data, concat(mode, uleb(len(init)), init)...)
	}
	if len(a.data) > 0 {
		b = append(b, section(module.SectionData, data)...)
	}
	return append(b, a.custom...)
}
