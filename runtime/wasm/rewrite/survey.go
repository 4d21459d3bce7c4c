package rewrite

import (
	"fmt"
	"slices"

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
	accesses   uint32 // to memory, in the function before it
	kind       eventKind
	inLoop     bool // some loop of the function is around it
	tick       bool // a tick goes in front of this call: set by markFirstCalls
	after      bool // a tick follows this call: set by markReturns
}

// work is what a part of the code can make a processor do.
type work struct {
	bytes    uint64 // of code, or what is as much work as so many
	accesses uint64 // to memory, each of which may have to fetch a page first, and what takes as long
}

func (w work) plus(o work) work  { return work{w.bytes + o.bytes, w.accesses + o.accesses} }
func (w work) minus(o work) work { return work{w.bytes - o.bytes, w.accesses - o.accesses} }

// function is what the survey finds in a function that is defined here.
type function struct {
	events []event
	// outside is the work of its code outside of loops, calls left out;
	// accesses are all that there are.
	outside  work
	accesses uint32
	calls    bool // it makes any
	// tables says that it changes tables, init and drop are the data segments
	// that it copies from and drops. See unrestorable.
	tables     bool
	init, drop []uint32
	// masked are the locals that may hold the result of an and: see compare.go.
	masked []uint32

	bounds // set by the call graph
}

// survey is a module as the rewrite sees it.
type survey struct {
	m *module.Module
	// functionTypes are the indices of the types of all functions, imported ones first.
	functionTypes []uint32
	functions     []function
	events        []event // of all functions
	// foreign says which imported functions are those of other modules of the
	// plugin rather than the host's.
	foreign []bool
	// linked says that there are such modules.
	linked bool
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
	for i := range m.Imports {
		if m.Imports[i].Kind == module.KindFunction {
			s.functionTypes = append(s.functionTypes, m.Imports[i].Type)
		}
	}
	s.functionTypes = append(s.functionTypes, m.Functions...)
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

// isForeign reports whether a function is one of another module of the plugin.
// What it does is not known here: it may call others, and by a reference that
// it was given also those of this module.
func (s *survey) isForeign(index uint32) bool { return int(index) < len(s.foreign) && s.foreign[index] }

// foreignFunctions finds the functions that are imported from some modules.
func foreignFunctions(m *module.Module, names []string) []bool {
	var all []bool
	for i := range m.Imports {
		if imp := &m.Imports[i]; imp.Kind == module.KindFunction {
			all = append(all, slices.Contains(names, imp.Module))
		}
	}
	return all
}

// visitor goes over the instructions of one function.
type visitor struct {
	*survey
	f     *function
	index uint32
	loops []int  // how deep the open loops are
	size  uint64 // what the instruction before leaves, if it is a constant
	masks masks
}

// lookAt goes over the instructions of one function.
func (s *survey) lookAt(i int) error {
	v := visitor{survey: s, f: &s.functions[i], index: s.index(i), size: noSize, masks: masks{survey: s}}
	code := s.m.Instructions(i)
	for code.Next() {
		in := &code.Instruction
		if len(v.loops) == 0 {
			v.f.outside.bytes += uint64(in.End - in.Start)
		}
		v.masks.follow(in)
		last := v.size
		v.size = noSize
		if in.Op == module.I32Const {
			v.size = uint64(uint32(in.Immediate))
			continue
		}
		e := event{
			start: uint32(in.Start), end: uint32(in.End), arg: uint32(in.Immediate),
			accesses: v.f.accesses, inLoop: len(v.loops) > 0,
		}
		if v.visit(in, code.Depth, last, &e) {
			s.events = append(s.events, e)
		}
	}
	v.f.masked = v.masks.result()
	return code.Err()
}

// visit looks at an instruction and reports whether it is an event, which it
// completes. size is that of a bulk operation, if it is known.
func (v *visitor) visit(in *module.Instruction, depth int, size uint64, e *event) bool {
	switch in.Op {
	case module.Loop:
		v.loops = append(v.loops, depth)
		e.kind = loopStart
	case module.End:
		if len(v.loops) == 0 || depth >= v.loops[len(v.loops)-1] {
			return false
		}
		v.loops = v.loops[:len(v.loops)-1]
		e.kind = loopEnd
	case module.Call:
		e.kind, v.f.calls = directCall, true
	case module.CallIndirect:
		e.kind, v.f.calls = indirectCall, true
	case module.GlobalSet:
		v.written[e.arg] = true
		return false
	case module.RefFunc:
		v.references = append(v.references, reference{from: v.index, to: e.arg})
		return false
	default:
		return v.other(in, size, e)
	}
	return true
}

// other looks at instructions that neither branch nor call.
func (v *visitor) other(in *module.Instruction, size uint64, e *event) bool {
	n := accesses(in.Op)
	v.f.accesses += n
	if len(v.loops) == 0 {
		v.f.outside.accesses += uint64(n)
	}
	return (in.Op >= firstBulk && !module.IsVector(in.Op) || in.Op == module.TableSet) && v.bulk(in, size, e)
}

// accesses returns how often an instruction may have to wait for a page of
// memory, or how long it takes by the same measure.
func accesses(op uint32) uint32 {
	switch {
	case op >= opI32Eqz && op <= opI64Extend32S: // nearly half of all
		return 0
	case op == module.MemoryInit || op == module.MemoryCopy || op == module.MemoryFill:
		return bulkAccesses
	case isLowered(op):
		return 1 // it becomes a row of instructions
	}
	if module.Describe(op).Accesses() {
		return 1
	}
	return 0
}

// small is the size up to which a bulk operation isn't counted by its size, in
// bytes of memory or entries of a table.
func small(op uint32) uint64 {
	switch op {
	case module.TableInit, module.TableCopy, module.TableFill, module.TableGrow:
		return smallEntries
	}
	return smallBytes
}

// firstBulk is the first of the opcodes that work on memory and tables in
// bulk; there are none above them but vectors.
const (
	firstBulk = module.MemoryInit
	noSize    = ^uint64(0)
)

// bulk looks at an instruction that may change tables or segments, and reports
// whether it is an event.
func (v *visitor) bulk(in *module.Instruction, size uint64, e *event) bool {
	f := v.f
	switch in.Op {
	case module.MemoryInit:
		v.segments = true
		f.init = append(f.init, e.arg)
	case module.DataDrop:
		v.segments = true
		f.drop = append(f.drop, e.arg)
		return false
	case module.TableInit, module.TableCopy, module.TableFill, module.TableGrow:
		f.tables = true
	case module.TableSet, module.ElemDrop:
		f.tables = true
		return false
	case module.MemoryCopy, module.MemoryFill:
	default: // table.size
		return false
	}
	e.accesses = f.accesses
	e.kind, e.arg = bulk, in.Op
	if most := small(in.Op); size <= most {
		e.kind, e.arg = smallBulk, uint32(size*smallBytes/most>>smallShift)
	}
	return true
}
