// Package module reads WebAssembly modules: their sections, and the
// instructions of their functions. It believes no count and no size, uses
// memory only in proportion to the bytes that are there, and checks structure,
// not types: that is the compiler's work.
//
// What is read is WebAssembly 2.0, the features that wazero calls
// CoreFeaturesV2. The format is described in the WebAssembly specification,
// https://webassembly.github.io/spec/core/binary/.
package module

// Module is a module as it stands in the file. Offsets count from the
// beginning of Bytes. Slices of bytes in it are views of Bytes.
type Module struct {
	Bytes []byte

	Sections []Section // in the order of the file, custom ones included
	Types    []FuncType
	Imports  []Import
	// Functions are the types, by index, of the functions that are defined
	// here. Their own indices begin after those of the imported ones.
	Functions []uint32
	Tables    []Table
	Memories  []Limits
	Globals   []Global
	Exports   []Export
	Start     int // the index of the start function; −1 = none
	Elements  []Element
	DataCount int // what the data count section says; −1 = there is none
	Bodies    []Body
	Data      []Segment
	// Imported counts the imports of each kind, by the numbers of the kinds.
	Imported [4]int
	// Vectors says that the module has values of type v128 in its types, imports,
	// globals, locals or constant expressions. [Read] doesn't look at the
	// instructions of functions, which may have others; package preflight does.
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

// Section is where a section stands. Name is that of a custom section.
type Section struct {
	ID   byte
	Name string
	// Header is where its number stands, Start and End bound its content,
	// which for a custom section is what follows its name.
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
	Type         uint32 // of a function, by index
	Table        Table
	Memory       Limits
	Global       GlobalType
}

// GlobalType is the type of a global.
type GlobalType struct {
	Type    byte
	Mutable bool
}

// Global is a global that is defined here.
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
	// Bits is the operand: of numbers the bits, sign-extended for i32; of
	// global.get and ref.func the index; of ref.null the type. For v128.const
	// it is where in Bytes the 16 bytes are.
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
	// Functions are the indices of the functions in it; those given by
	// expressions are in Exprs instead.
	Functions []uint32
	Exprs     []Const
}

// Body is the code of a function that is defined here.
type Body struct {
	// Start and End bound it in Bytes, without its size in front.
	Start, End int
	// Groups and Locals count its declarations of locals and the locals that
	// these declare, parameters left out.
	Groups, Locals int
	// Code is where its first instruction is.
	Code int
}

// Segment is a segment of data.
type Segment struct {
	Mode   byte
	Memory uint32
	Offset Const // of an active one
	Init   []byte
}

// FunctionType returns the type of a function by its index in the module, of
// an imported one too; ok is false when there is none.
func (m *Module) FunctionType(index uint32) (t FuncType, ok bool) {
	n, ok := m.TypeOf(index)
	if !ok || int(n) >= len(m.Types) {
		return FuncType{}, false
	}
	return m.Types[n], true
}

// CodeBytes returns how long the bodies of all functions are together.
func (m *Module) CodeBytes() int {
	n := 0
	for i := range m.Bodies {
		n += m.Bodies[i].End - m.Bodies[i].Start
	}
	return n
}

// TypeOf returns the index of the type of a function by its index in the
// module.
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
