package module

// Opcodes allowed in constant expressions.
const (
	opEnd       byte = 0x0b
	opGlobalGet byte = 0x23
	opI32Const  byte = 0x41
	opI64Const  byte = 0x42
	opF32Const  byte = 0x43
	opF64Const  byte = 0x44
	opRefNull   byte = 0xd0
	opRefFunc   byte = 0xd2
	opVector    byte = 0xfd // followed by the number opVectorConst

	opVectorConst byte = 12
)

// constant reads a constant expression.
func (r *reader) constant() Const {
	c := Const{Op: r.byte()}
	switch c.Op {
	case opI32Const:
		c.Bits = uint64(r.signed(32))
	case opI64Const:
		c.Bits = uint64(r.signed(64))
	case opF32Const:
		c.Bits = little(r.bytes(4))
	case opF64Const:
		c.Bits = little(r.bytes(8))
	case opGlobalGet, opRefFunc:
		c.Bits = uint64(r.u32())
	case opRefNull:
		c.Bits = uint64(r.refType())
	case opVector:
		if n := r.byte(); n != opVectorConst {
			r.fail("a constant expression has an instruction that is not constant")
		}
		r.vectors = true
		c.Bits = uint64(r.pos)
		r.bytes(16)
	default:
		r.lacks(constantProposal(c.Op), "a constant expression has the instruction 0x%02x", c.Op)
	}
	if end := r.byte(); end != opEnd {
		r.lacks(constantProposal(end), "a constant expression has more than one instruction")
	}
	return c
}

// little reads a little-endian number of at most 8 bytes.
func little(b []byte) uint64 {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// elements reads the element section. The three bits of a segment's flag mean:
// not active; has a table index or is declarative; has expressions.
func (m *Module) elements(r *reader) {
	entries := 0
	for n := r.count("element segments", 2, MaxElements); n > 0 && r.err == nil; n-- {
		e := Element{Type: FuncRef}
		flag := r.u32()
		if flag > 7 {
			r.fail("element segments of kind %d are unknown", flag)
			return
		}
		explicit, exprs := flag&2 != 0, flag&4 != 0
		switch {
		case flag&1 == 0:
			if explicit {
				e.Table = r.u32()
			}
			e.Offset = r.constant()
		case explicit:
			e.Mode = Declarative
		default:
			e.Mode = Passive
		}
		if flag&3 != 0 {
			e.Type = r.elementType(exprs)
		}
		size := 1
		if exprs {
			size = 2
		}
		count := r.count("table entries", size, MaxEntries-entries)
		entries += count
		for ; count > 0 && r.err == nil; count-- {
			if exprs {
				e.Exprs = append(e.Exprs, r.constant())
			} else {
				e.Functions = append(e.Functions, r.u32())
			}
		}
		m.Elements = append(m.Elements, e)
	}
}

// elementType reads the type of a segment's entries: a reference type, or the
// kind 0, which stands for functions.
func (r *reader) elementType(exprs bool) byte {
	if exprs {
		return r.refType()
	}
	if kind := r.byte(); kind != 0 {
		r.fail("element kind %d is unknown", kind)
	}
	return FuncRef
}

func (m *Module) data(r *reader) {
	n := r.count("data segments", 2, MaxSegments)
	m.Data = make([]Segment, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		var s Segment
		switch flag := r.u32(); flag {
		case 0:
			s.Offset = r.constant()
		case 1:
			s.Mode = Passive
		case 2:
			s.Memory = r.u32()
			s.Offset = r.constant()
		default:
			r.fail("data segments of kind %d are unknown", flag)
			return
		}
		s.Init = r.bytes(int(r.u32()))
		m.Data = append(m.Data, s)
	}
}

// MaxLocals is how many locals a function may declare.
const MaxLocals = 10_000

func (m *Module) bodies(r *reader) {
	n := r.count("function bodies", 3, MaxFunctions)
	m.Bodies = make([]Body, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		size := int(r.u32())
		b := Body{Start: r.pos, End: r.pos + size}
		if len(r.bytes(size)) == 0 {
			r.fail("a function has no body")
			return
		}
		locals := &reader{b: r.b, pos: b.Start, end: b.End}
		for group := range locals.localGroups {
			if b.Locals += int(group.Count); b.Locals > MaxLocals {
				locals.fail("a function has more than %d locals", MaxLocals)
			}
			b.Groups++
		}
		b.Code = locals.pos
		r.vectors = r.vectors || locals.vectors
		r.err = locals.err
		m.Bodies = append(m.Bodies, b)
	}
}

// LocalGroup declares locals of one type.
type LocalGroup struct {
	Count uint32
	Type  byte
}

// Locals returns the declarations of locals of a function, by its index among
// those defined in the module.
func (m *Module) Locals(function int) []LocalGroup {
	b := m.Bodies[function]
	r := &reader{b: m.Bytes, pos: b.Start, end: b.End}
	groups := make([]LocalGroup, 0, b.Groups)
	for group := range r.localGroups {
		groups = append(groups, group)
	}
	return groups
}

// localGroups reads the declarations of locals at the start of a body.
func (r *reader) localGroups(yield func(LocalGroup) bool) {
	for n := r.count("groups of locals", 2, MaxLocals); n > 0 && r.err == nil; n-- {
		group := LocalGroup{Count: r.u32()}
		group.Type = r.valueType()
		if r.err != nil || !yield(group) {
			return
		}
	}
}
