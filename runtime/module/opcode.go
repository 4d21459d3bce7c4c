package module

// Opcode describes an instruction: its operands in the module, and what it pops
// from and pushes onto the operand stack.
type Opcode struct {
	Name string // as in the text format
	// Operands says what follows the opcode.
	Operands Operands
	// Pop are the types that it takes, the last one being the top of the stack,
	// Push is the type that it leaves, 0 = none. Both leave out what depends on
	// the instruction's operands, or on the types on the stack.
	Pop  string
	Push byte
	// Align is the natural alignment of a memory access, as a power of two.
	Align uint32
	// Lanes is the exclusive upper bound of a lane index.
	Lanes byte
}

// Operands says what follows an opcode in the module.
type Operands uint8

// The kinds of operands.
const (
	NoOperands Operands = iota
	BlockTyped          // the type of a block
	Index               // the index of a local, a function, a label and so on
	Indices             // two indices
	Zero                // a byte 0, for the only memory
	Zeros               // two of them
	IndexZero           // an index and a byte 0
	Targets             // labels of br_table
	Types               // value types, of select
	RefTyped            // a reference type
	Memory              // alignment and offset
	MemoryLane          // alignment, offset and a lane index
	Lane                // a lane index
	Lanes               // 16 lane indices
	Const32             // a number
	Const64
	Float32
	Float64
	Vector // 16 bytes
)

// Describe returns what is known about an opcode, in the form of
// [Instruction.Op]; nil = it is not one of WebAssembly 2.0.
func Describe(op uint32) *Opcode {
	var o *Opcode
	switch prefix, n := op>>8, op&0xff; {
	case prefix == 0:
		o = &plain[n]
	case prefix == prefixMisc && n < uint32(len(misc)):
		o = &misc[n]
	case prefix == prefixVector:
		o = &vector[n]
	default:
		return nil
	}
	if o.Name == "" {
		return nil
	}
	return o
}

// Accesses reports whether an instruction loads from memory or stores to it.
func (o *Opcode) Accesses() bool { return o.Operands == Memory || o.Operands == MemoryLane }

// IsVector reports whether an instruction is one of those for 128-bit vectors. Other
// instructions that take or leave vectors, such as local.get, don't count.
func IsVector(op uint32) bool { return op>>8 == prefixVector }
