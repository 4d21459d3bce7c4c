package module

// Proposal is the name of a WebAssembly proposal that is not part of version 2.0.
type Proposal string

// The proposals that compilers use today.
const (
	Threads         Proposal = "threads"
	Exceptions      Proposal = "exception handling"
	TailCalls       Proposal = "tail calls"
	GC              Proposal = "garbage collection"
	ExtendedConst   Proposal = "extended constant expressions"
	Memory64        Proposal = "64-bit memory"
	MultiMemory     Proposal = "multiple memories"
	RelaxedSIMD     Proposal = "relaxed SIMD"
	StackSwitching  Proposal = "stack switching"
	WideArithmetic  Proposal = "wide arithmetic"
	CustomPageSizes Proposal = "custom page sizes"
)

// What tags use: sections, imports and exports of their own.
const (
	sectionTag byte = 13
	kindTag    byte = 4
)

// kindProposal returns the proposal of an unknown kind of imports or exports.
func kindProposal(kind byte) Proposal {
	if kind == kindTag {
		return Exceptions
	}
	return ""
}

// instructionProposal returns the proposal of an unknown opcode; "" = unknown, too.
func instructionProposal(op uint32) Proposal {
	prefix := op
	if op > 0xff {
		prefix = op >> 8
	}
	switch prefix {
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		return Exceptions
	case 0x12, 0x13:
		return TailCalls
	case 0x14, 0x15, 0xd3, 0xd4, 0xd5, 0xd6, 0xfb:
		return GC
	case 0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5:
		return StackSwitching
	case 0xfe:
		return Threads
	case prefixMisc:
		if n := op & 0xff; n >= 19 && n <= 22 {
			return WideArithmetic
		}
	}
	return ""
}

// typeProposal returns the proposal of an unknown type of values, references or blocks.
func typeProposal(t byte) Proposal {
	switch {
	case t == 0x69, t == 0x74:
		return Exceptions
	case t == 0x68, t == 0x75:
		return StackSwitching
	case t >= 0x63 && t <= 0x73:
		return GC
	}
	return ""
}

// formProposal returns the proposal of an unknown form of a type.
func formProposal(form byte) Proposal {
	switch form {
	case 0x5d:
		return StackSwitching
	case 0x4e, 0x4f, 0x50, 0x5e, 0x5f:
		return GC
	}
	return ""
}

// limitsProposal returns the proposal of an unknown flag of limits.
func limitsProposal(flag byte) Proposal {
	switch {
	case flag > 15:
		return ""
	case flag&8 != 0:
		return CustomPageSizes
	case flag&2 != 0:
		return Threads
	case flag&4 != 0:
		return Memory64
	}
	return ""
}

// constantProposal returns the proposal of an instruction in a constant expression that 2.0 doesn't allow.
func constantProposal(op byte) Proposal {
	switch op {
	case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e,
		opI32Const, opI64Const, opGlobalGet: // operands of these
		return ExtendedConst
	case 0xfb:
		return GC
	}
	return ""
}
