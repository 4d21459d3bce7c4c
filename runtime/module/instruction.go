package module

import "fmt"

// Instruction is one instruction of a function. Only those operands are
// meaningful that its opcode has: see [Opcode.Operands].
type Instruction struct {
	// Op is the opcode; for those with a prefix it is prefix<<8 | number, such
	// as [MemoryCopy].
	Op uint32
	// Start and End are its bounds in the module.
	Start, End int
	// Immediate is the first operand: an index, a depth, a constant (its bits,
	// sign-extended for i32), a reference type, or the offset of a memory
	// access. Second is the second index: the table of call_indirect and
	// table.init, the source of table.copy.
	Immediate uint64
	Second    uint32
	// Align is the alignment of a memory access, as a power of two.
	Align uint32
	// Type is the type of a typed select.
	Type byte
	// Lane is the index of a lane.
	Lane byte
	// Block is the type of a block, loop or if.
	Block BlockType
	// Depths are the targets of br_table, the default last. The next br_table
	// overwrites it.
	Depths []uint32
	// Bytes are the 16 bytes of v128.const and i8x16.shuffle, as in the module.
	Bytes []byte
}

// BlockType is the type of a block.
type BlockType struct {
	// Index is the index of a function type; −1 = Value says what the block returns.
	Index int
	Value byte // 0 = nothing
}

// The opcodes that are used by name.
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
	Drop         uint32 = 0x1a
	Select       uint32 = 0x1b
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
	RefIsNull    uint32 = 0xd1
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

// Instructions iterates over the instructions of a function, by its index among
// those defined in the module.
func (m *Module) Instructions(function int) *Instructions {
	b := m.Bodies[function]
	return &Instructions{r: reader{b: m.Bytes, pos: b.Code, end: b.End}}
}

// Instructions reads instructions one by one:
//
//	code := m.Instructions(f)
//	for code.Next() {
//		use(code.Instruction)
//	}
//	return code.Err()
type Instructions struct {
	Instruction
	// Depth is how many blocks are open after the instruction, including the
	// function itself.
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
	c.Start = c.r.pos
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
	op := uint32(r.b[r.pos]) // Next has checked that there is one
	r.pos++
	switch { // most instructions
	case op >= LocalGet && op <= GlobalSet:
		c.Op, c.Immediate = op, uint64(r.u32())
	case op >= firstArithmetic && op <= lastArithmetic:
		c.Op = op
	case op == End:
		c.Op = op
		c.Depth--
	case op == I32Const || op == I64Const:
		c.Op, c.Immediate = op, c.number64(op)
	default:
		c.other(op)
	}
}

// number64 reads the operand of a constant, sign-extended.
func (c *Instructions) number64(op uint32) uint64 {
	r := &c.r
	if r.pos < r.end && r.b[r.pos] < 0x80 { // most are small
		r.pos++
		return uint64(int64(int8(r.b[r.pos-1]<<1)) >> 1)
	}
	if op == I32Const {
		return uint64(r.signed(32))
	}
	return uint64(r.signed(64))
}

// other reads the operands of opcodes that read does not handle directly.
func (c *Instructions) other(op uint32) {
	if op == prefixMisc || op == prefixVector {
		op = op<<8 | c.number(op)
	}
	known := Describe(op)
	if known == nil {
		c.r.pos = c.Start
		c.r.lacks(instructionProposal(op), "instruction %s is unknown", opcodeText(op))
		return
	}
	c.Op = op
	if known.Operands == BlockTyped {
		c.Depth++
	}
	c.operands(known)
}

// The instructions in this range have no operands.
const (
	firstArithmetic = 0x45 // i32.eqz
	lastArithmetic  = 0xc4 // i64.extend32_s
)

// number reads the number after a prefix. Those of vector instructions must be
// in their shortest form: no compiler writes others, and wazero 1.12 takes the
// second byte of such a number for an instruction of its own.
func (c *Instructions) number(prefix uint32) uint32 {
	r := &c.r
	at := r.pos
	n := r.u32()
	switch {
	case r.err != nil:
		return 0
	case n > 0xff:
		r.pos = c.Start
		var from Proposal
		if prefix == prefixVector && n < 0x120 {
			from = RelaxedSIMD
		}
		r.lacks(from, "instruction 0x%02x %d is unknown", prefix, n)
		return 0
	case prefix == prefixVector && r.pos-at != int(1+n>>7):
		r.pos = c.Start
		r.fail("the number of instruction 0x%02x %d is not in its shortest form", prefix, n)
	}
	return n
}

func opcodeText(op uint32) string {
	if op > 0xff {
		return fmt.Sprintf("0x%02x %d", op>>8, op&0xff)
	}
	return fmt.Sprintf("0x%02x", op)
}

// operands reads what follows an opcode.
func (c *Instructions) operands(o *Opcode) {
	r := &c.r
	switch o.Operands {
	case NoOperands:
	case BlockTyped:
		c.Block = r.blockType()
	case Index:
		c.Immediate = uint64(r.u32())
	case Indices:
		c.Immediate = uint64(r.u32())
		c.Second = r.u32()
	case Zero:
		c.Immediate = r.zero()
	case Zeros:
		c.Immediate = r.zero()
		c.Second = uint32(r.zero())
	case IndexZero:
		c.Immediate = uint64(r.u32())
		c.Second = uint32(r.zero())
	case Targets:
		c.branchTable()
	case Types:
		if n := r.u32(); n != 1 {
			r.fail("a select has %d types instead of one", n)
		}
		c.Type = r.valueType()
	case RefTyped:
		c.Immediate = uint64(r.refType())
	case Memory:
		c.access(o)
	case MemoryLane:
		c.access(o)
		c.lane(o)
	case Lane:
		c.lane(o)
	case Lanes:
		c.Bytes = r.bytes(16)
		for _, lane := range c.Bytes {
			if lane >= o.Lanes {
				r.fail("lane %d of %s is not less than %d", lane, o.Name, o.Lanes)
			}
		}
	case Const32:
		c.Immediate = c.number64(I32Const)
	case Const64:
		c.Immediate = c.number64(I64Const)
	case Float32:
		c.Immediate = little(r.bytes(4))
	case Float64:
		c.Immediate = little(r.bytes(8))
	case Vector:
		c.Bytes = r.bytes(16)
	}
}

// zero reads the byte that stands for the memory.
func (r *reader) zero() uint64 {
	if r.byte() != 0 {
		r.lacks(MultiMemory, "a byte 0 is expected: there is only one memory")
	}
	return 0
}

// memoryNamed is added to an alignment if a memory index follows.
const memoryNamed = 0x40

// access reads the operands of a memory access. Alignments beyond the natural
// one are invalid; wazero and others find flags in the higher bits.
func (c *Instructions) access(o *Opcode) {
	c.Align = c.r.u32()
	switch {
	case c.Align >= memoryNamed && c.Align < 2*memoryNamed:
		c.r.lacks(MultiMemory, "the access of %s names a memory", o.Name)
	case c.Align > o.Align:
		c.r.fail("the alignment 2**%d of %s is larger than the natural one of 2**%d", c.Align, o.Name, o.Align)
	}
	c.Immediate = uint64(c.r.u32())
}

func (c *Instructions) lane(o *Opcode) {
	if c.Lane = c.r.byte(); c.Lane >= o.Lanes {
		c.r.fail("lane %d of %s is not less than %d", c.Lane, o.Name, o.Lanes)
	}
}

func (r *reader) blockType() BlockType {
	// One byte for the usual types, otherwise an index as a positive signed number.
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
	var from Proposal
	if r.left() > 0 {
		from = typeProposal(r.b[r.pos])
	}
	index := r.signed(33)
	if index < 0 {
		r.lacks(from, "a block type is unknown")
	}
	return BlockType{Index: int(index)}
}

// MaxBranches is how many targets a br_table may have.
const MaxBranches = 100_000

func (c *Instructions) branchTable() {
	n := c.r.count("branches", 1, MaxBranches)
	c.depths = c.depths[:0]
	for ; n >= 0 && c.r.err == nil; n-- { // one more, for the default
		c.depths = append(c.depths, c.r.u32())
	}
	c.Depths = c.depths
}
