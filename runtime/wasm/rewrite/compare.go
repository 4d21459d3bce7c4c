package rewrite

import (
	"slices"

	"github.com/jobhost/jobhost/runtime/module"
)

// wazero 1.12 miscompiles a comparison of 0 with the result of an and, if the
// and is the right operand and a branch depends on it: it tests the bits and
// keeps the condition, which should have been reversed. So
//
//	(if (i32.lt_s (i32.const 0) (i32.and …)) …)
//
// takes the wrong branch. The rewrite puts an `or 0` between the and and the
// comparison, which the compiler doesn't see through. Which operands of
// comparisons may be the result of an and is found in two steps: by the
// preceding instruction; and if that reads a local, by whether any instruction
// in the function may set it to the result of an and. In case of doubt the
// answer is yes.

// producer is the instruction that has pushed the top of the stack, judging by
// the last instruction. It is empty at the beginning of a function.
type producer struct {
	op, index uint32 // its opcode and first operand
}

// follow handles an instruction.
func (p *producer) follow(in *module.Instruction) {
	if in.Op != module.LocalTee && in.Op != opNop { // these don't change it
		p.op, p.index = in.Op, uint32(in.Immediate)
	}
}

// origin says where the operand on top of the stack comes from.
type origin uint8

const (
	fromAnywhere origin = iota
	fromAnd
	fromLocal
	fromElse // any other instruction
)

// origin returns where the result of a producer comes from.
func (s *survey) origin(p producer) origin {
	switch p.op {
	case opI32And, opI64And:
		return fromAnd
	case module.LocalGet:
		return fromLocal
	case module.Select, module.SelectTyped, module.GlobalGet:
		return fromElse
	case module.Call, module.CallIndirect:
		if s.results(p) > 0 {
			return fromElse
		}
		return fromAnywhere
	}
	if module.Describe(p.op).Push != 0 {
		return fromElse
	}
	return fromAnywhere // blocks, branches, and what only pops operands
}

// results returns how many results a call has.
func (s *survey) results(call producer) int {
	index := call.index
	if call.op == module.Call {
		if int(index) >= len(s.functionTypes) {
			return 0
		}
		index = s.functionTypes[index]
	}
	if int(index) >= len(s.m.Types) {
		return 0
	}
	return len(s.m.Types[index].Results)
}

// masks finds the locals of a function that may hold the result of an and.
type masks struct {
	*survey
	top     producer
	asked   bool // some comparison depends on it
	masked  []uint32
	aliases []alias
}

// alias says that one local is set to the value of another.
type alias struct{ to, from uint32 }

// follow handles an instruction of the function.
func (m *masks) follow(in *module.Instruction) {
	switch {
	case in.Op == module.LocalSet || in.Op == module.LocalTee:
		switch m.origin(m.top) {
		case fromAnywhere, fromAnd:
			m.masked = append(m.masked, uint32(in.Immediate))
		case fromLocal:
			m.aliases = append(m.aliases, alias{to: uint32(in.Immediate), from: m.top.index})
		}
	case isOrdered(in.Op):
		m.asked = m.asked || m.top.op == module.LocalGet
	}
	m.top.follow(in)
}

// result returns the locals in ascending order, if any comparison depends on them.
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

// maybeMasked reports whether the top of the stack of a function may be the
// result of an and.
func (s *survey) maybeMasked(f *function, p producer) bool {
	switch s.origin(p) {
	case fromElse:
		return false
	case fromLocal:
		_, found := slices.BinarySearch(f.masked, p.index)
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
