package module

import (
	"bytes"
)

// Header is the beginning of every module: the magic number and version 1.
const Header = "\x00asm\x01\x00\x00\x00"

// Limits on what costs memory to read. The output of today's compilers is at
// most a tenth of them.
const (
	MaxTypes     = 100_000
	MaxImports   = 10_000
	MaxFunctions = 100_000
	MaxTables    = 1_000
	MaxGlobals   = 100_000
	MaxExports   = 100_000
	MaxElements  = 100_000 // segments
	MaxSegments  = 1_000_000
	// MaxEntries limits the table entries of all element segments together.
	MaxEntries  = 1_000_000
	maxSections = 10_000
	// maxValues limits the parameters and the results of a function.
	maxValues = 1_000
)

// order is the position of each section relative to the others: the data count
// comes before the code.
var order = [...]int{
	SectionType: 1, SectionImport: 2, SectionFunction: 3, SectionTable: 4, SectionMemory: 5, SectionGlobal: 6,
	SectionExport: 7, SectionStart: 8, SectionElement: 9, SectionDataCount: 10, SectionCode: 11, SectionData: 12,
}

// Read reads a module. Its errors are of type [*Error]. It does not look at the
// instructions of functions; see [Module.Instructions].
func Read(b []byte) (*Module, error) {
	m := &Module{Bytes: b, Start: -1, DataCount: -1}
	r := &reader{b: b, end: len(b)}
	if !bytes.HasPrefix(b, []byte(Header)) {
		r.fail("it doesn't begin with the header of a module")
		return nil, r.err
	}
	r.pos = len(Header)
	last := 0
	for r.left() > 0 {
		if len(m.Sections) == maxSections {
			r.fail("there are more than %d sections", maxSections)
			break
		}
		s := Section{Header: r.pos}
		s.ID = r.byte()
		size := int(r.u32())
		s.Start = r.pos
		r.bytes(size)
		s.End = r.pos
		if r.err != nil {
			break
		}
		content := &reader{b: b, pos: s.Start, end: s.End}
		if s.ID == SectionCustom {
			s.Name = content.name()
			s.Start = content.pos
		} else {
			last = m.inOrder(content, s, last)
			m.section(content, s.ID)
			m.Vectors = m.Vectors || content.vectors
			if content.left() > 0 {
				content.fail("%d bytes are left over at the end of section %d", content.left(), s.ID)
			}
		}
		r.err = content.err
		m.Sections = append(m.Sections, s)
	}
	m.agree(r)
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// inOrder checks that sections come in order, each at most once.
func (m *Module) inOrder(r *reader, s Section, last int) int {
	if int(s.ID) >= len(order) {
		r.pos = s.Header
		var from Proposal
		if s.ID == sectionTag {
			from = Exceptions
		}
		r.lacks(from, "section %d is unknown", s.ID)
		return last
	}
	if order[s.ID] <= last {
		r.pos = s.Header
		r.fail("section %d comes twice or too late", s.ID)
	}
	return order[s.ID]
}

// agree checks that sections are consistent with each other.
func (m *Module) agree(r *reader) {
	if len(m.Functions) != len(m.Bodies) {
		r.fail("%d functions are declared, %d are defined", len(m.Functions), len(m.Bodies))
	}
	if m.DataCount >= 0 && m.DataCount != len(m.Data) {
		r.fail("%d data segments are announced, there are %d", m.DataCount, len(m.Data))
	}
}

func (m *Module) section(r *reader, id byte) {
	switch id {
	case SectionType:
		m.types(r)
	case SectionImport:
		m.imports(r)
	case SectionFunction:
		m.functions(r)
	case SectionTable:
		for n := r.count("tables", 3, MaxTables); n > 0 && r.err == nil; n-- {
			m.Tables = append(m.Tables, r.table())
		}
	case SectionMemory:
		for n := r.count("memories", 2, MaxTables); n > 0 && r.err == nil; n-- {
			m.Memories = append(m.Memories, r.limits())
		}
	case SectionGlobal:
		for n := r.count("globals", 5, MaxGlobals); n > 0 && r.err == nil; n-- {
			m.Globals = append(m.Globals, Global{GlobalType: r.globalType(), Init: r.constant()})
		}
	case SectionExport:
		m.exports(r)
	case SectionStart:
		m.Start = int(r.u32())
	case SectionElement:
		m.elements(r)
	case SectionDataCount:
		m.DataCount = int(r.u32())
	case SectionCode:
		m.bodies(r)
	case SectionData:
		m.data(r)
	}
}

func (m *Module) types(r *reader) {
	n := r.count("types", 3, MaxTypes)
	m.Types = make([]FuncType, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		if form := r.byte(); form != 0x60 {
			r.lacks(formProposal(form), "type form 0x%02x is unknown", form)
		}
		m.Types = append(m.Types, FuncType{Params: r.valueTypes("parameters"), Results: r.valueTypes("results")})
	}
}

func (r *reader) valueTypes(what string) []byte {
	n := r.count(what, 1, maxValues)
	start := r.pos
	for ; n > 0 && r.err == nil; n-- {
		r.valueType()
	}
	if r.err != nil {
		return nil
	}
	return r.b[start:r.pos:r.pos]
}

func (m *Module) imports(r *reader) {
	for n := r.count("imports", 4, MaxImports); n > 0 && r.err == nil; n-- {
		var i Import
		i.Module, i.Name = r.name(), r.name()
		i.Kind = r.byte()
		switch i.Kind {
		case KindFunction:
			i.Type = r.u32()
			if int(i.Type) >= len(m.Types) {
				r.fail("type %d of an import is not defined", i.Type)
			}
		case KindTable:
			i.Table = r.table()
		case KindMemory:
			i.Memory = r.limits()
		case KindGlobal:
			i.Global = r.globalType()
		default:
			r.lacks(kindProposal(i.Kind), "imports of kind %d are unknown", i.Kind)
		}
		if r.err == nil {
			m.Imported[i.Kind]++
			m.Imports = append(m.Imports, i)
		}
	}
}

func (m *Module) functions(r *reader) {
	n := r.count("functions", 1, MaxFunctions)
	m.Functions = make([]uint32, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		t := r.u32()
		if int(t) >= len(m.Types) {
			r.fail("type %d of a function is not defined", t)
		}
		m.Functions = append(m.Functions, t)
	}
}

func (m *Module) exports(r *reader) {
	n := r.count("exports", 3, MaxExports)
	seen := make(map[string]bool, n)
	for ; n > 0 && r.err == nil; n-- {
		var e Export
		e.Name = r.name()
		e.Kind, e.Index = r.byte(), r.u32()
		have := 0
		switch e.Kind {
		case KindFunction:
			have = len(m.Functions)
		case KindTable:
			have = len(m.Tables)
		case KindMemory:
			have = len(m.Memories)
		case KindGlobal:
			have = len(m.Globals)
		default:
			r.lacks(kindProposal(e.Kind), "exports of kind %d are unknown", e.Kind)
			return
		}
		if int(e.Index) >= m.Imported[e.Kind]+have {
			r.fail("an export has the index %d, where there is nothing", e.Index)
		}
		if seen[e.Name] {
			r.fail("two exports have the same name")
		}
		seen[e.Name] = true
		m.Exports = append(m.Exports, e)
	}
}
