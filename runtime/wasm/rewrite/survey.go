package rewrite

import (
	"fmt"

	"github.com/jobhost/jobhost/runtime/module"
)

type eventKind uint8

const (
	loopStart eventKind = iota // at its header
	loopEnd
	directCall   // of the function with index arg
	indirectCall // of some function of type arg
	bulk         // an operation of a size that only the guest knows; arg is the opcode
	smallBulk    // of a constant size; arg is what it counts for
)

// event is one of the few instructions that the rewrite looks at.
type event struct {
	start, end uint32 // of the instruction, in the module
	arg        uint32
	kind       eventKind
	inLoop     bool // some loop of the function is around it
	tick       bool // a tick goes in front of this call: set by markFirstCalls
}

// function is what the survey finds in a function that is defined here.
type function struct {
	events []event
	// bytes is how much of its code is outside of loops.
	bytes uint64
	// scratch says that it needs a local: it has an event of kind bulk.
	scratch bool
	// tables says that it changes tables, init and drop are the data segments
	// that it copies from and drops. See unrestorable.
	tables     bool
	init, drop []uint32

	bounds // set by the call graph
}

// survey is a module as the rewrite sees it.
type survey struct {
	m         *module.Module
	functions []function
	events    []event // of all functions
	// segments says that some function names a data segment.
	segments bool
	// written are the globals that some function sets, references what
	// functions are made references to, and by whom.
	written    map[uint32]bool
	references []reference
	// types numbers the types of functions, equal ones alike; targets are the
	// components of the functions that calls by reference reach, by that number.
	types   map[uint32]int
	targets []int
}

// reference is a ref.func in a function; both are indices in the module.
type reference struct{ from, to uint32 }

// look goes once over all instructions.
func look(m *module.Module) (*survey, error) {
	code := 0
	for _, b := range m.Bodies {
		code += b.End - b.Code
	}
	s := &survey{
		m: m, functions: make([]function, len(m.Bodies)), written: map[uint32]bool{},
		events: make([]event, 0, code/16),
	}
	ends := make([]int, len(m.Bodies))
	for i := range m.Bodies {
		if err := s.lookAt(i); err != nil {
			return nil, fmt.Errorf("function %d: %w", s.index(i), err)
		}
		ends[i] = len(s.events)
	}
	start := 0
	for i, end := range ends {
		s.functions[i].events = s.events[start:end:end]
		start = end
	}
	return s, nil
}

// index returns the index in the module of a function that is defined here.
func (s *survey) index(defined int) uint32 {
	return uint32(s.m.Imported[module.KindFunction] + defined)
}

// defined returns the function with an index in the module; ok is false for
// imported ones.
func (s *survey) defined(index uint32) (f *function, ok bool) {
	i := int(index) - s.m.Imported[module.KindFunction]
	if i < 0 || i >= len(s.functions) {
		return nil, false
	}
	return &s.functions[i], true
}

// lookAt goes over the instructions of one function.
func (s *survey) lookAt(i int) error {
	f := &s.functions[i]
	code := s.m.Instructions(i)
	var loops []int // how deep the open loops are
	size := noSize  // what the instruction before leaves, if it is a constant
	for code.Next() {
		in := &code.Instruction
		if len(loops) == 0 {
			f.bytes += uint64(in.End - in.Start)
		}
		e := event{start: uint32(in.Start), end: uint32(in.End), arg: uint32(in.Immediate), inLoop: len(loops) > 0}
		last := size
		size = noSize
		switch in.Op {
		case module.I32Const:
			size = uint64(uint32(in.Immediate))
			continue
		case module.Loop:
			loops = append(loops, code.Depth)
			e.kind = loopStart
		case module.End:
			if len(loops) == 0 || code.Depth >= loops[len(loops)-1] {
				continue
			}
			loops = loops[:len(loops)-1]
			e.kind = loopEnd
		case module.Call:
			e.kind = directCall
		case module.CallIndirect:
			e.kind = indirectCall
		case module.GlobalSet:
			s.written[e.arg] = true
			continue
		case module.RefFunc:
			s.references = append(s.references, reference{from: s.index(i), to: e.arg})
			continue
		default:
			if in.Op < firstBulk && in.Op != module.TableSet {
				continue
			}
			if !s.lookAtBulk(f, in, last, &e) {
				continue
			}
		}
		s.events = append(s.events, e)
	}
	return code.Err()
}

// firstBulk is the first of the opcodes that work on memory and tables in
// bulk; there are none above them but vectors.
const (
	firstBulk = module.MemoryInit
	noSize    = ^uint64(0)
)

// lookAtBulk looks at an instruction that may change tables or segments, and
// reports whether it is an event.
func (s *survey) lookAtBulk(f *function, in *module.Instruction, size uint64, e *event) bool {
	switch in.Op {
	case module.MemoryInit:
		s.segments = true
		f.init = append(f.init, e.arg)
	case module.DataDrop:
		s.segments = true
		f.drop = append(f.drop, e.arg)
		return false
	case module.TableInit, module.TableCopy, module.TableFill, module.TableGrow:
		f.tables = true
	case module.TableSet, module.ElemDrop:
		f.tables = true
		return false
	case module.MemoryCopy, module.MemoryFill:
	default: // table.size, vectors
		return false
	}
	e.kind, e.arg = bulk, in.Op
	if size <= smallBytes {
		e.kind, e.arg = smallBulk, uint32(size>>smallShift)
	} else {
		f.scratch = true
	}
	return true
}
