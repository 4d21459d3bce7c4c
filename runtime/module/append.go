package module

import (
	"encoding/binary"
	"fmt"
)

// AppendBody appends the locals and instructions of a function in canonical
// form.
func (m *Module) AppendBody(b []byte, function int) ([]byte, error) {
	if function >= len(m.Bodies) {
		return nil, fmt.Errorf("function %d has no body", function)
	}
	groups := m.Locals(function)
	b = AppendU32(b, uint32(len(groups)))
	for _, g := range groups {
		b = append(AppendU32(b, g.Count), g.Type)
	}
	code := m.Instructions(function)
	for code.Next() {
		b = code.Append(b)
	}
	return b, code.Err()
}

// Append appends the instruction in canonical form.
func (i *Instruction) Append(b []byte) []byte {
	b = AppendOpcode(b, i.Op)
	switch o := Describe(i.Op); o.Operands {
	case NoOperands:
	case BlockTyped:
		b = i.Block.append(b)
	case Index:
		b = AppendU32(b, uint32(i.Immediate))
	case Indices:
		b = AppendU32(AppendU32(b, uint32(i.Immediate)), i.Second)
	case Zero:
		b = append(b, 0)
	case Zeros:
		b = append(b, 0, 0)
	case IndexZero:
		b = append(AppendU32(b, uint32(i.Immediate)), 0)
	case Targets:
		b = AppendU32(b, uint32(len(i.Depths)-1))
		for _, d := range i.Depths {
			b = AppendU32(b, d)
		}
	case Types:
		b = append(b, 1, i.Type)
	case RefTyped:
		b = append(b, byte(i.Immediate))
	case Memory:
		b = AppendU32(AppendU32(b, i.Align), uint32(i.Immediate))
	case MemoryLane:
		b = append(AppendU32(AppendU32(b, i.Align), uint32(i.Immediate)), i.Lane)
	case Lane:
		b = append(b, i.Lane)
	case Lanes, Vector:
		b = append(b, i.Bytes...)
	case Const32, Const64:
		b = AppendS64(b, int64(i.Immediate))
	case Float32:
		b = binary.LittleEndian.AppendUint32(b, uint32(i.Immediate))
	case Float64:
		b = binary.LittleEndian.AppendUint64(b, i.Immediate)
	}
	return b
}

func (t BlockType) append(b []byte) []byte {
	switch {
	case t.Index >= 0:
		return AppendS64(b, int64(t.Index))
	case t.Value == 0:
		return append(b, noResult)
	default:
		return append(b, t.Value)
	}
}

// noResult is the type of blocks that return nothing.
const noResult = 0x40

// AppendOpcode appends an opcode in the form of [Instruction.Op].
func AppendOpcode(b []byte, op uint32) []byte {
	if prefix := byte(op >> 8); prefix != 0 {
		return AppendU32(append(b, prefix), op&0xff)
	}
	return append(b, byte(op))
}

// AppendU32 appends an unsigned number.
func AppendU32(b []byte, v uint32) []byte {
	if v < 0x80 { // most are small
		return append(b, byte(v))
	}
	return binary.AppendUvarint(b, uint64(v))
}

// AppendS64 appends a signed number.
func AppendS64(b []byte, v int64) []byte {
	for {
		low := byte(v & 0x7f)
		v >>= 7
		if v == 0 && low&0x40 == 0 || v == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

// AppendSized appends something preceded by its size.
func AppendSized(b, content []byte) []byte {
	return append(AppendU32(b, uint32(len(content))), content...)
}
