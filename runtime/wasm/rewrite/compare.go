package rewrite

import (
	"slices"

	"github.com/jobhost/jobhost/runtime/module"
)

// wazero 1.12 compiles a comparison of 0 with the result of an and wrongly,
// where the and stands on the right and a branch depends on it: it tests the
// bits and keeps the condition, which should have been turned around. So
//
//	(if (i32.lt_s (i32.const 0) (i32.and …)) …)
//
// takes the wrong way. The rewrite puts an `or 0` between the and and the
// comparison, which the compiler doesn't see through. Which operands of
// comparisons may be the result of an and is found in two steps: what the
// instruction before has left; and if that is a local, whether something in the
// function may give it the result of an and. Whatever is not certain counts as
// one.

// origin says where the operand on top of the stack comes from.
type origin struct {
	kind  originKind
	local uint32 // for fromLocal
}

type originKind uint8

const (
	fromAnywhere originKind = iota
	fromAnd
	fromLocal
	fromElse // an instruction that is none of these
)

// next returns the origin of what is on top of the stack after an instruction.
// results is how many a call has.
func (o origin) next(in *module.Instruction, results int) origin {
	switch in.Op {
	case opI32And, opI64And:
		return origin{kind: fromAnd}
	case module.LocalGet:
		return origin{kind: fromLocal, local: uint32(in.Immediate)}
	case module.LocalTee, opNop: // leave it as it is
		return o
	case module.Select, module.SelectTyped, module.GlobalGet, module.I32Const, module.I64Const, module.MemorySize, module.MemoryGrow:
		return origin{kind: fromElse}
	case module.Call, module.CallIndirect:
		if results > 0 {
			return origin{kind: fromElse}
		}
		return origin{}
	}
	if d := module.Describe(in.Op); d.Push != 0 {
		return origin{kind: fromElse}
	}
	return origin{} // blocks, branches, and what only takes operands
}

// masks finds the locals of a function that may hold the result of an and.
type masks struct {
	top     origin
	asked   bool // some comparison depends on it
	masked  []uint32
	aliases []alias
}

// alias says that one local is set to what another one holds.
type alias struct{ to, from uint32 }

// follow follows an instruction of the function. results is how many a call has.
func (m *masks) follow(in *module.Instruction, results int) {
	switch in.Op {
	case module.LocalSet, module.LocalTee:
		switch m.top.kind {
		case fromAnywhere, fromAnd:
			m.masked = append(m.masked, uint32(in.Immediate))
		case fromLocal:
			m.aliases = append(m.aliases, alias{to: uint32(in.Immediate), from: m.top.local})
		}
	default:
		m.asked = m.asked || isOrdered(in.Op) && m.top.kind == fromLocal
	}
	m.top = m.top.next(in, results)
}

// result returns the locals in ascending order, if a comparison asks for them.
func (m *masks) result() []uint32 {
	if !m.asked || len(m.masked) == 0 {
		return nil
	}
	from := map[uint32][]uint32{}
	for _, a := range m.aliases {
		from[a.from] = append(from[a.from], a.to)
	}
	seen := map[uint32]bool{}
	all := m.masked
	for next := 0; next < len(all); next++ {
		if seen[all[next]] {
			continue
		}
		seen[all[next]] = true
		all = append(all, from[all[next]]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// maybeMasked reports whether an operand may be the result of an and.
func (f *function) maybeMasked(o origin) bool {
	switch o.kind {
	case fromElse:
		return false
	case fromLocal:
		_, found := slices.BinarySearch(f.masked, o.local)
		return found
	default:
		return true
	}
}

// isOrdered reports whether an instruction compares integers for less or
// greater.
func isOrdered(op uint32) bool {
	return op >= opI32LtS && op <= opI32GeU || op >= opI64LtS && op <= opI64GeU
}
