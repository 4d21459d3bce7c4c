package module

// Instruction is one instruction of a function.
type Instruction struct {
	// Op is the opcode; for those with a prefix it is prefix<<8 | number, such
	// as [MemoryCopy].
	Op uint32
	// Start and End bound it in the module.
	Start, End int
	// Immediate is the first operand: an index, a depth, a constant (its bits,
	// sign-extended for i32), or the offset of a memory access. Second is the
	// second one, where there are two: the table of call_indirect and
	// table.init, the source of table.copy. Align is the alignment of a memory
	// access, as a power of two.
	Immediate uint64
	Second    uint32
	Align     uint32
	// Block is the type of block, loop, if; with others it means nothing.
	Block BlockType
	// Depths are the targets of br_table, the default last; with others it
	// means nothing. The next br_table overwrites it.
	Depths []uint32
}

// BlockType is the type of a block.
type BlockType struct {
	// Index is that of a function type; −1 = Value says what the block returns.
	Index int
	Value byte // 0 = nothing
}

// The opcodes that somebody asks for by name.
const (
	Unreachable  uint32 = 0x00
	Block        uint32 = 0x02
	Loop         uint32 = 0x03
	If           uint32 = 0x04
	Else         uint32 = 0x05
	End          uint32 = 0x0b
	Br           uint32 = 0x0c
	BrIf         uint32 = 0x0d
	BrTable      uint32 = 0x0e
	Return       uint32 = 0x0f
	Call         uint32 = 0x10
	CallIndirect uint32 = 0x11
	SelectTyped  uint32 = 0x1c
	LocalGet     uint32 = 0x20
	LocalSet     uint32 = 0x21
	LocalTee     uint32 = 0x22
	GlobalGet    uint32 = 0x23
	GlobalSet    uint32 = 0x24
	TableGet     uint32 = 0x25
	TableSet     uint32 = 0x26
	MemorySize   uint32 = 0x3f
	MemoryGrow   uint32 = 0x40
	I32Const     uint32 = 0x41
	I64Const     uint32 = 0x42
	RefNull      uint32 = 0xd0
	RefFunc      uint32 = 0xd2
	MemoryInit   uint32 = 0xfc08
	DataDrop     uint32 = 0xfc09
	MemoryCopy   uint32 = 0xfc0a
	MemoryFill   uint32 = 0xfc0b
	TableInit    uint32 = 0xfc0c
	ElemDrop     uint32 = 0xfc0d
	TableCopy    uint32 = 0xfc0e
	TableGrow    uint32 = 0xfc0f
	TableSize    uint32 = 0xfc10
	TableFill    uint32 = 0xfc11
)

const (
	prefixMisc   = 0xfc
	prefixVector = 0xfd
)

// Instructions goes through the instructions of a function, by its place
// among those that are defined here.
func (m *Module) Instructions(function int) *Instructions {
	b := m.Bodies[function]
	return &Instructions{r: reader{b: m.Bytes, pos: b.Code, end: b.End}}
}

// Instructions reads instructions one after the other:
//
//	code := m.Instructions(f)
//	for code.Next() {
//		use(code.Instruction)
//	}
//	return code.Err()
type Instructions struct {
	Instruction
	// Depth is how many blocks are open after the instruction, the function
	// itself included.
	Depth int

	r       reader
	started bool
	depths  []uint32
}

// Next reads the next instruction. It returns false after the end of the
// function, and at the first error.
func (c *Instructions) Next() bool {
	if !c.started {
		c.started, c.Depth = true, 1
	}
	if c.r.left() == 0 || c.Depth == 0 {
		switch {
		case c.r.err == nil && c.Depth > 0:
			c.r.fail("a function ends inside of a block")
		case c.r.left() > 0:
			c.r.fail("a function goes on after its end")
		}
		return false
	}
	c.Start, c.Immediate, c.Second, c.Align = c.r.pos, 0, 0, 0
	c.read()
	c.End = c.r.pos
	return c.r.err == nil
}

// Err returns the first error, of type [*Error].
func (c *Instructions) Err() error {
	if c.r.err != nil {
		return c.r.err
	}
	return nil
}

func (c *Instructions) read() {
	r := &c.r
	op := r.byte()
	c.Op = uint32(op)
	switch { // two in three instructions
	case op >= 0x20 && op <= 0x24: // locals, globals
		c.Immediate = uint64(r.u32())
		return
	case op >= 0x45 && op <= 0xc4: // arithmetic
		return
	}
	switch op {
	case prefixMisc:
		c.misc()
		return
	case prefixVector:
		c.vector()
		return
	case 0x02, 0x03, 0x04: // block, loop, if
		c.Block = r.blockType()
		c.Depth++
	case 0x0b: // end
		c.Depth--
	case 0x0e: // br_table
		c.branchTable()
	case 0x11: // call_indirect
		c.Immediate, c.Second = uint64(r.u32()), r.u32()
	case 0x1c: // select with types
		for n := r.count("types of select", 1, maxValues); n > 0 && r.err == nil; n-- {
			r.valueType()
		}
	case 0x3f, 0x40: // memory.size, memory.grow
		c.Immediate = uint64(r.u32())
	case 0x41:
		c.Immediate = uint64(r.signed(32))
	case 0x42:
		c.Immediate = uint64(r.signed(64))
	case 0x43:
		c.Immediate = little(r.bytes(4))
	case 0x44:
		c.Immediate = little(r.bytes(8))
	case 0xd0:
		c.Immediate = uint64(r.refType())
	default:
		c.simple(op)
	}
}

// simple reads the operands of instructions that have an index, a place in
// memory, or none.
func (c *Instructions) simple(op byte) {
	r := &c.r
	switch {
	case op >= 0x28 && op <= 0x3e: // loads and stores
		c.Align, c.Immediate = r.u32(), uint64(r.u32())
	case op == 0x0c || op == 0x0d || op == 0x10, // br, br_if, call
		op == 0x25 || op == 0x26, // tables
		op == 0xd2:               // ref.func
		c.Immediate = uint64(r.u32())
	case op <= 0x01, op == 0x05, op == 0x0f, // unreachable, nop, else, return
		op == 0x1a, op == 0x1b, // drop, select
		op == 0xd1: // ref.is_null
	default:
		r.pos--
		r.fail("instruction 0x%02x is unknown; threads, tail calls, exceptions and garbage collection are not supported", op)
	}
}

func (r *reader) blockType() BlockType {
	// One byte for the usual types, else an index as a positive signed number.
	if r.left() > 0 {
		switch b := r.b[r.pos]; b {
		case 0x40:
			r.pos++
			return BlockType{Index: -1}
		case I32, I64, F32, F64, V128, FuncRef, ExternRef:
			r.pos++
			return BlockType{Index: -1, Value: b}
		}
	}
	index := r.signed(33)
	if index < 0 {
		r.fail("a block type is unknown")
	}
	return BlockType{Index: int(index)}
}

// MaxBranches is how many targets a br_table may have.
const MaxBranches = 100_000

func (c *Instructions) branchTable() {
	n := c.r.count("branches", 1, MaxBranches)
	c.depths = c.depths[:0]
	for ; n >= 0 && c.r.err == nil; n-- { // the default is one more
		c.depths = append(c.depths, c.r.u32())
	}
	c.Depths = c.depths
}

// misc reads an instruction with the prefix 0xfc.
func (c *Instructions) misc() {
	r := &c.r
	n := r.u32()
	c.Op = prefixMisc<<8 | n
	switch {
	case n <= 7: // saturating truncation
	case n == 8, n == 12, n == 10, n == 14: // memory.init, table.init, memory.copy, table.copy
		c.Immediate, c.Second = uint64(r.u32()), r.u32()
	case n == 9, n == 11, n == 13, n >= 15 && n <= 17: // drops, fills, table.grow, table.size
		c.Immediate = uint64(r.u32())
	default:
		r.pos = c.Start
		r.fail("instruction 0xfc %d is unknown", n)
	}
}

// vector reads an instruction with the prefix 0xfd.
func (c *Instructions) vector() {
	r := &c.r
	n := r.u32()
	c.Op = prefixVector<<8 | n
	switch {
	case n <= 11, n == 92, n == 93: // loads and stores
		c.Align, c.Immediate = r.u32(), uint64(r.u32())
	case n == 12, n == 13: // v128.const, shuffle
		c.Immediate = uint64(r.pos)
		r.bytes(16)
	case n >= 21 && n <= 34: // lanes
		c.Immediate = uint64(r.byte())
	case n >= 84 && n <= 91: // loads and stores of lanes
		c.Align, c.Immediate = r.u32(), uint64(r.u32())
		r.byte()
	case n > 255:
		r.pos = c.Start
		r.fail("instruction 0xfd %d is unknown", n)
	}
}
