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
	smallBulk    // of a constant size; arg is its cost
)

// event is one of the few instructions that matter to the rewrite.
type event struct {
	start, end uint32 // of the instruction, in the module
	arg        uint32
	accesses   uint32 // to memory, in the function before it
	kind       eventKind
	inLoop     bool // it is inside a loop of the function
	tick       bool // a tick precedes this call: set by markFirstCalls
	after      bool // a tick follows this call: set by markReturns
}

// work is how much a part of the code can make a processor do.
type work struct {
	bytes    uint64 // of code, or equivalent work
	accesses uint64 // to memory, each of which may have to wait for a page, and equivalent work
}

func (w work) plus(o work) work  { return work{w.bytes + o.bytes, w.accesses + o.accesses} }
func (w work) minus(o work) work { return work{w.bytes - o.bytes, w.accesses - o.accesses} }

// function is what the survey finds about a function that the module defines.
type function struct {
	events []event
	// outside is the work of its code outside loops, excluding calls; accesses
	// are all that there are.
	outside  work
	accesses uint32
	calls    bool // it makes any
	// tables means that it changes tables; init and drop are the data segments
	// that it copies from and drops. See unrestorable.
	tables     bool
	init, drop []uint32
	// masked are the locals that may hold the result of an and: see compare.go.
	masked []uint32

	bounds // set by the call graph
}

// survey is the rewrite's view of a module.
type survey struct {
	m *module.Module
	// functionTypes are the type indices of all functions, imported ones first.
	functionTypes []uint32
	functions     []function
	events        []event // of all functions
	// foreign says which imported functions belong to other modules of the
	// plugin rather than the host.
	foreign []bool
	// linked means that there are such modules.
	linked bool
	// segments means that some function names a data segment.
	segments bool
	// written are the globals that some function sets, references the functions
	// that references are made to, and by which functions.
	written    map[uint32]bool
	references []reference
	// types numbers the types of functions, equal ones alike; targets are the
	// components of the functions that indirect calls reach, by that number.
	types   map[uint32]int
	targets []int
}

// reference is a ref.func in a function; both are indices in the module.
type reference struct{ from, to uint32 }

// look goes over all instructions once.
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

// index returns the index in the module of a function that it defines.
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

// isForeign reports whether a function belongs to another module of the plugin.
// What it does is unknown here: it may call others, including those of this
// module through a reference that it was given.
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
	loops []int  // nesting depths of the open loops
	size  uint64 // the value pushed by the preceding instruction, if it is a constant
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

// visit handles an instruction and reports whether it is an event, which it
// completes. size is that of a bulk operation, if known.
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

// other handles instructions that neither branch nor call.
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
		return 1 // it becomes a sequence of instructions
	}
	if module.Describe(op).Accesses() {
		return 1
	}
	return 0
}

// small is the size up to which a bulk operation isn't charged by size, in
// bytes of memory or entries of a table.
func small(op uint32) uint64 {
	switch op {
	case module.TableInit, module.TableCopy, module.TableFill, module.TableGrow:
		return smallEntries
	}
	return smallBytes
}

// firstBulk is the first of the opcodes for bulk operations on memory and
// tables; only vector instructions have higher opcodes.
const (
	firstBulk = module.MemoryInit
	noSize    = ^uint64(0)
)

// bulk handles an instruction that may change tables or segments, and reports
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
