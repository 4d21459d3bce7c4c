package rig

import (
	"math/rand/v2"

	"github.com/jobhost/jobhost/runtime/module"
)

// Program is a generated module.
type Program struct {
	Wasm []byte
	// Nodes is how many statements and expressions it has, including those that
	// were cut.
	Nodes int
}

// Generate generates the program of a seed. It always ends: the mutable global
// [Fuel], which the caller sets, is counted down by calls and loops. The
// statements in cut, by number, are left out, and the expressions in it are 0;
// all others are the same as without the cut.
func Generate(seed uint64, p Profile, cut map[int]bool) (*Program, error) {
	g := &generator{
		Rand: rand.New(rand.NewPCG(seed, 1)), Profile: p, cut: cut,
		m: &module.Module{Start: -1, DataCount: -1}, operations: map[byte][]uint32{},
	}
	for _, op := range opcodes() {
		if o := module.Describe(op); g.usable(o) {
			g.operations[o.Push] = append(g.operations[o.Push], op)
		}
	}
	g.outline()
	bodies := make([][]byte, len(g.m.Functions))
	for i := range bodies {
		bodies[i] = g.body(i)
	}
	wasm, err := g.m.Encode(func(b []byte, function int) ([]byte, error) { return append(b, bodies[function]...), nil })
	if err != nil {
		return nil, err
	}
	return &Program{Wasm: wasm, Nodes: g.nodes}, nil
}

// generator generates one program.
type generator struct {
	*rand.Rand
	Profile
	m          *module.Module
	operations map[byte][]uint32 // by result type
	cut        map[int]bool
	nodes      int

	// State of the function that is being generated:
	code   []byte
	locals []byte  // the types, parameters first
	own    int     // the number of locals for statements to choose from; scratch locals follow
	labels []label // the innermost last
	room   int     // how many more instructions it may get
	depth  int     // of nested expressions
	// straight leaves out everything that divides code into blocks.
	straight bool
}

// label is the target of a branch, and the types it takes.
type label struct {
	types []byte
	loop  bool
}

// usable reports whether operation may use an opcode.
func (g *generator) usable(o *module.Opcode) bool {
	switch o.Operands {
	case module.NoOperands, module.Memory, module.MemoryLane, module.Lane, module.Lanes:
	default:
		return false
	}
	if o.Pop == "" || o.Push != 0 && !g.has(o.Push) {
		return false
	}
	for _, t := range []byte(o.Pop) {
		if !g.has(t) {
			return false
		}
	}
	return true
}

// node generates a statement or expression that can be cut.
func (g *generator) node(whole, instead func()) {
	n, at := g.nodes, len(g.code)
	g.nodes++
	whole()
	if g.cut[n] {
		room := g.room // so that everything after it stays the same
		g.code = g.code[:at]
		instead()
		g.room = room
	}
}

// chance is true once in n times, on average.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func (g *generator) pick(types []byte) byte { return types[g.IntN(len(types))] }

// typeList returns up to most types.
func (g *generator) typeList(most int) []byte {
	list := make([]byte, g.IntN(most+1))
	for i := range list {
		list[i] = g.pick(g.Types)
	}
	return list
}

// typeIndex returns the index of a function type, which is added if it is new.
func (g *generator) typeIndex(params, results []byte) int {
	for i, t := range g.m.Types {
		if string(t.Params) == string(params) && string(t.Results) == string(results) {
			return i
		}
	}
	g.m.Types = append(g.m.Types, module.FuncType{Params: params, Results: results})
	return len(g.m.Types) - 1
}

// What emits instructions:

func (g *generator) emit(in module.Instruction) {
	g.room--
	g.code = in.Append(g.code)
}

func (g *generator) op(ops ...uint32) {
	for _, op := range ops {
		g.emit(module.Instruction{Op: op})
	}
}

func (g *generator) at(op uint32, index int) {
	g.emit(module.Instruction{Op: op, Immediate: uint64(index)})
}

func (g *generator) at2(op uint32, index, second int) {
	g.emit(module.Instruction{Op: op, Immediate: uint64(index), Second: uint32(second)})
}

func (g *generator) i32(v int32) {
	g.emit(module.Instruction{Op: module.I32Const, Immediate: uint64(int64(v))})
}

// open begins a block, and close ends it.
func (g *generator) open(op uint32, params, results []byte) {
	t := module.BlockType{Index: -1}
	switch {
	case len(params) == 0 && len(results) == 1:
		t.Value = results[0]
	case len(params)+len(results) > 0:
		t.Index = g.typeIndex(params, results)
	}
	g.emit(module.Instruction{Op: op, Block: t})
	if op == module.Loop {
		g.labels = append(g.labels, label{types: params, loop: true})
		return
	}
	g.labels = append(g.labels, label{types: results})
}

func (g *generator) close() {
	g.op(module.End)
	g.labels = g.labels[:len(g.labels)-1]
}

// local returns a local of a type that statements may change, adding one if
// there is none.
func (g *generator) local(t byte) int {
	from := g.IntN(g.own)
	for i := range g.own {
		if n := (from + i) % g.own; g.locals[n] == t {
			return n
		}
	}
	return g.scratch(t)
}

// scratch adds a local that nothing else changes.
func (g *generator) scratch(t byte) int {
	g.locals = append(g.locals, t)
	return len(g.locals) - 1
}

// global returns a global of a type, a mutable one if it is to be set; −1 =
// there is none.
func (g *generator) global(t byte, mutable bool) int {
	from := g.IntN(len(g.m.Globals))
	for i := range g.m.Globals {
		n := (from + i) % len(g.m.Globals)
		if have := g.m.Globals[n]; n != fuelGlobal && have.Type == t && (have.Mutable || !mutable) {
			return n
		}
	}
	return -1
}
