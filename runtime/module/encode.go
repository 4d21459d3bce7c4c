package module

import "encoding/binary"

// Encode writes the module in canonical form: what was read, without a
// superfluous byte. Numbers have their shortest form, empty and custom sections
// are left out. Code that was canonical is unchanged.
//
// body appends the body of a function, by its index among those defined in the
// module, without its size; nil = [Module.AppendBody]. The number of functions
// is that of Functions, so that bodies may be added.
func (m *Module) Encode(body func(b []byte, function int) ([]byte, error)) ([]byte, error) {
	if body == nil {
		body = m.AppendBody
	}
	out := make([]byte, 0, len(m.Bytes)+len(m.Bytes)/4+4096)
	out = append(out, Header...)
	for _, s := range []struct {
		id     byte
		n      int
		append func([]byte, int) []byte
	}{
		{SectionType, len(m.Types), m.appendType},
		{SectionImport, len(m.Imports), m.appendImport},
		{SectionFunction, len(m.Functions), func(b []byte, i int) []byte { return AppendU32(b, m.Functions[i]) }},
		{SectionTable, len(m.Tables), func(b []byte, i int) []byte { return appendTable(b, m.Tables[i]) }},
		{SectionMemory, len(m.Memories), func(b []byte, i int) []byte { return appendLimits(b, m.Memories[i]) }},
		{SectionGlobal, len(m.Globals), m.appendGlobal},
		{SectionExport, len(m.Exports), m.appendExport},
	} {
		out = appendVector(out, s.id, s.n, s.append)
	}
	if m.Start >= 0 {
		out = appendSection(out, SectionStart, AppendU32(nil, uint32(m.Start)))
	}
	out = appendVector(out, SectionElement, len(m.Elements), m.appendElement)
	if m.DataCount >= 0 {
		out = appendSection(out, SectionDataCount, AppendU32(nil, uint32(len(m.Data))))
	}
	out, err := m.appendCode(out, body)
	if err != nil {
		return nil, err
	}
	return appendVector(out, SectionData, len(m.Data), m.appendData), nil
}

// appendCode appends the code section. Its content is written in place, after
// room for its size.
func (m *Module) appendCode(out []byte, body func([]byte, int) ([]byte, error)) ([]byte, error) {
	if len(m.Functions) == 0 {
		return out, nil
	}
	section := make([]byte, 0, len(m.Bytes)+len(m.Bytes)/4+4096)
	section = AppendU32(section, uint32(len(m.Functions)))
	var one []byte
	var err error
	for i := range m.Functions {
		if one, err = body(one[:0], i); err != nil {
			return nil, err
		}
		section = AppendSized(section, one)
	}
	return appendSection(out, SectionCode, section), nil
}

// appendVector appends a section of n entries, unless there are none.
func appendVector(out []byte, id byte, n int, entry func([]byte, int) []byte) []byte {
	if n == 0 {
		return out
	}
	content := AppendU32(nil, uint32(n))
	for i := range n {
		content = entry(content, i)
	}
	return appendSection(out, id, content)
}

func appendSection(out []byte, id byte, content []byte) []byte {
	return AppendSized(append(out, id), content)
}

// AppendCustom appends a custom section.
func AppendCustom(out []byte, name string, content []byte) []byte {
	return appendSection(out, SectionCustom, append(AppendSized(nil, []byte(name)), content...))
}

func (m *Module) appendType(b []byte, i int) []byte {
	t := &m.Types[i]
	b = AppendSized(append(b, 0x60), t.Params)
	return AppendSized(b, t.Results)
}

func (m *Module) appendImport(b []byte, n int) []byte {
	i := &m.Imports[n]
	b = AppendSized(b, []byte(i.Module))
	b = append(AppendSized(b, []byte(i.Name)), i.Kind)
	switch i.Kind {
	case KindFunction:
		return AppendU32(b, i.Type)
	case KindTable:
		return appendTable(b, i.Table)
	case KindMemory:
		return appendLimits(b, i.Memory)
	default:
		return appendGlobalType(b, i.Global)
	}
}

func appendTable(b []byte, t Table) []byte { return appendLimits(append(b, t.Type), t.Limits) }

func appendLimits(b []byte, l Limits) []byte {
	if !l.HasMax {
		return AppendU32(append(b, 0), l.Min)
	}
	return AppendU32(AppendU32(append(b, 1), l.Min), l.Max)
}

func appendGlobalType(b []byte, t GlobalType) []byte {
	if t.Mutable {
		return append(b, t.Type, 1)
	}
	return append(b, t.Type, 0)
}

func (m *Module) appendGlobal(b []byte, i int) []byte {
	return m.appendConst(appendGlobalType(b, m.Globals[i].GlobalType), &m.Globals[i].Init)
}

func (m *Module) appendExport(b []byte, i int) []byte {
	e := &m.Exports[i]
	return AppendU32(append(AppendSized(b, []byte(e.Name)), e.Kind), e.Index)
}

// appendConst appends a constant expression.
func (m *Module) appendConst(b []byte, c *Const) []byte {
	b = append(b, c.Op)
	switch c.Op {
	case opI32Const, opI64Const:
		b = AppendS64(b, int64(c.Bits))
	case opF32Const:
		b = binary.LittleEndian.AppendUint32(b, uint32(c.Bits))
	case opF64Const:
		b = binary.LittleEndian.AppendUint64(b, c.Bits)
	case opVector:
		b = append(append(b, opVectorConst), m.Bytes[c.Bits:c.Bits+16]...)
	case opRefNull:
		b = append(b, byte(c.Bits))
	default: // an index
		b = AppendU32(b, uint32(c.Bits))
	}
	return append(b, opEnd)
}

// The bits of an element segment's flag.
const (
	flagInactive    = 1
	flagExplicit    = 2
	flagExpressions = 4
)

func (m *Module) appendElement(b []byte, i int) []byte {
	e := &m.Elements[i]
	flag := uint32(0)
	if len(e.Exprs) > 0 || e.Type != FuncRef {
		flag |= flagExpressions
	}
	switch {
	case e.Mode == Passive:
		flag |= flagInactive
	case e.Mode == Declarative:
		flag |= flagInactive | flagExplicit
	case e.Table != 0 || e.Type != FuncRef:
		flag |= flagExplicit
	}
	b = AppendU32(b, flag)
	if e.Mode == Active {
		if flag&flagExplicit != 0 {
			b = AppendU32(b, e.Table)
		}
		b = m.appendConst(b, &e.Offset)
	}
	switch explicit := flag&(flagInactive|flagExplicit) != 0; {
	case explicit && flag&flagExpressions != 0:
		b = append(b, e.Type)
	case explicit:
		b = append(b, 0) // functions
	}
	if flag&flagExpressions != 0 {
		b = AppendU32(b, uint32(len(e.Exprs)))
		for i := range e.Exprs {
			b = m.appendConst(b, &e.Exprs[i])
		}
		return b
	}
	b = AppendU32(b, uint32(len(e.Functions)))
	for _, f := range e.Functions {
		b = AppendU32(b, f)
	}
	return b
}

func (m *Module) appendData(b []byte, i int) []byte {
	d := &m.Data[i]
	switch {
	case d.Mode == Passive:
		b = append(b, 1)
	case d.Memory == 0:
		b = m.appendConst(append(b, 0), &d.Offset)
	default:
		b = m.appendConst(AppendU32(append(b, 2), d.Memory), &d.Offset)
	}
	return AppendSized(b, d.Init)
}
