// Package module reads WebAssembly modules: their sections, and the
// instructions of their functions. It trusts no count and no size, uses memory
// only in proportion to the actual bytes, and checks structure, not types: that
// is the compiler's job.
//
// It reads WebAssembly 2.0, the features that wazero calls CoreFeaturesV2. The
// format is described in the WebAssembly specification,
// https://webassembly.github.io/spec/core/binary/.
package module

// Module is a module as stored in the file. Offsets are relative to Bytes. Its
// byte slices are views of Bytes.
type Module struct {
	Bytes []byte

	Sections []Section // in the order of the file, including custom ones
	Types    []FuncType
	Imports  []Import
	// Functions are the type indices of the functions that the module defines.
	// Their own indices begin after those of the imported ones.
	Functions []uint32
	Tables    []Table
	Memories  []Limits
	Globals   []Global
	Exports   []Export
	Start     int // the index of the start function; −1 = none
	Elements  []Element
	DataCount int // from the data count section; −1 = there is none
	Bodies    []Body
	Data      []Segment
	// Imported counts the imports of each kind, indexed by kind.
	Imported [4]int
	// Vectors is true if the module has values of type v128 in its types, imports, globals,
	// locals or constant expressions. [Read] doesn't look at the instructions of functions,
	// which may have others; package preflight does.
	Vectors bool
}

// The sections by their numbers.
const (
	SectionCustom byte = iota
	SectionType
	SectionImport
	SectionFunction
	SectionTable
	SectionMemory
	SectionGlobal
	SectionExport
	SectionStart
	SectionElement
	SectionCode
	SectionData
	SectionDataCount
)

// The kinds of imports and exports.
const (
	KindFunction byte = iota
	KindTable
	KindMemory
	KindGlobal
)

// The types of values.
const (
	I32       byte = 0x7f
	I64       byte = 0x7e
	F32       byte = 0x7d
	F64       byte = 0x7c
	V128      byte = 0x7b
	FuncRef   byte = 0x70
	ExternRef byte = 0x6f
)

// Section is the position of a section. Name is that of a custom section.
type Section struct {
	ID   byte
	Name string
	// Header is the position of its id, Start and End bound its content, which
	// for a custom section is what follows its name.
	Header, Start, End int
}

// FuncType is the type of a function, as value types.
type FuncType struct{ Params, Results []byte }

// Limits are in pages of 64 KiB for memories and in entries for tables.
type Limits struct {
	Min, Max uint32
	HasMax   bool
}

// Table is a table and the type of its entries.
type Table struct {
	Type byte
	Limits
}

// Import is one import. Only the fields of its kind are set.
type Import struct {
	Module, Name string
	Kind         byte
	Type         uint32 // of a function, as an index
	Table        Table
	Memory       Limits
	Global       GlobalType
}

// GlobalType is the type of a global.
type GlobalType struct {
	Type    byte
	Mutable bool
}

// Global is a global that the module defines.
type Global struct {
	GlobalType
	Init Const
}

// Export is one export.
type Export struct {
	Name  string
	Kind  byte
	Index uint32
}

// Const is a constant expression: one instruction and its operand.
type Const struct {
	Op byte
	// Bits is the operand: for numbers their bits, sign-extended for i32; for
	// global.get and ref.func the index; for ref.null the type; for v128.const
	// the position of its 16 bytes in Bytes.
	Bits uint64
}

// The modes of segments.
const (
	Active byte = iota
	Passive
	Declarative
)

// Element is a segment of table entries.
type Element struct {
	Mode   byte
	Table  uint32
	Offset Const // of an active one
	Type   byte
	// Functions are the indices of the functions in it; if expressions are
	// used, they are in Exprs instead.
	Functions []uint32
	Exprs     []Const
}

// Body is the code of a function that the module defines.
type Body struct {
	// Start and End are its bounds in Bytes, excluding the size that precedes it.
	Start, End int
	// Groups and Locals count its declarations of locals and the locals that
	// these declare, without parameters.
	Groups, Locals int
	// Code is the position of its first instruction.
	Code int
}

// Segment is a segment of data.
type Segment struct {
	Mode   byte
	Memory uint32
	Offset Const // of an active one
	Init   []byte
}

// FunctionType returns the type of a function, possibly imported, by its index
// in the module; ok is false if there is none.
func (m *Module) FunctionType(index uint32) (t FuncType, ok bool) {
	n, ok := m.TypeOf(index)
	if !ok || int(n) >= len(m.Types) {
		return FuncType{}, false
	}
	return m.Types[n], true
}

// CodeBytes returns the length of the bodies of all functions together.
func (m *Module) CodeBytes() int {
	n := 0
	for i := range m.Bodies {
		n += m.Bodies[i].End - m.Bodies[i].Start
	}
	return n
}

// TypeOf returns the type index of a function by its index in the module.
func (m *Module) TypeOf(index uint32) (uint32, bool) {
	i := int(index)
	if i < m.Imported[KindFunction] {
		for _, imp := range m.Imports {
			if imp.Kind != KindFunction {
				continue
			}
			if i == 0 {
				return imp.Type, true
			}
			i--
		}
	}
	i = int(index) - m.Imported[KindFunction]
	if i < 0 || i >= len(m.Functions) {
		return 0, false
	}
	return m.Functions[i], true
}
