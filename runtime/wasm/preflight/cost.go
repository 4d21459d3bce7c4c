package preflight

import "time"

// cost counts what makes the compiler take more time or memory than in
// proportion to the code. wazero's compiler (1.12) is fast on the output of
// compilers, but many of its steps multiply two counts that a hostile module
// chooses freely, and nothing interrupts it. Each field is such a product.
type cost struct {
	blocks int // basic blocks
	// depth sums the depths of blocks, and of the branches to them, in the
	// dominator tree: the compiler walks up to the root for each.
	depth int
	// lookups sums how many blocks are searched for the definition of a local,
	// or of the address of the memory.
	lookups int
	// known sums, over the blocks, the addresses whose bounds were checked.
	known int
	// operands sums, over the blocks, the operands on the stack.
	operands int
	// nesting sums, over the blocks, the loops around them.
	nesting int
	// merges counts the places where control flow merges; arguments are the
	// values passed there, squares is each place's number of values squared,
	// for each branch to it but one, times the nesting depth of loops.
	merges, arguments, squares int
	// values counts parameters and results of blocks and branches, passed those
	// of calls.
	values, passed int
	// targets counts those of br_table, targetSquares the square of the number
	// for each br_table.
	targets, targetSquares int
	calls, importCalls     int
	// checked counts the values whose types are checked for branches that are never taken.
	checked int
	heavy   int // bytes of memory for instructions that expand to much code
}

// term is a product of the estimate: what is multiplied, in words, and the cost
// of a unit.
type term struct {
	units int
	what  string
	time  time.Duration
	bytes int
}

// The units were measured with wazero 1.12 on one core of an x86-64 server,
// with modules made to show one of them each, and rounded up. The bytes are in
// use while the function is compiled.
func (w *walker) terms() []term {
	c := &w.cost
	return []term{
		{c.depth, "basic blocks in a row", 15, 0},
		{c.lookups, "uses of locals and memory after many branches", 25, 0},
		{c.known, "memory accesses before many branches", 80, 25},
		{c.operands, "operands on the stack across many branches", 100, 50},
		{w.crossing * c.blocks, "locals that live across many branches", 100, 50},
		{w.crossing * c.merges, "locals that live across many blocks", 1300, 120},
		{w.crossing * c.nesting, "locals in nested loops", 25, 5},
		{c.arguments, "values that differ between branches to the same label", 300, 280},
		{c.squares, "values that differ between branches to the same label", 4, 0},
		{c.values, "parameters and results of blocks", 1000, 160},
		{c.passed, "parameters and results of calls", 2000, 420},
		{c.targets, "targets of br_table", 5000, 2300},
		{c.targetSquares, "targets of one br_table", 1, 0},
		{w.mutable * c.calls, "calls in a module with many mutable globals", 340, 170},
		{c.checked, "values of branches that are never taken", 10, 0},
		{c.heavy, "instructions that become much code", 0, 1},
	}
}

// bytesPerByte is what the compiler retains for each byte of code until it has
// compiled all of it, including garbage.
const bytesPerByte = 32

// moduleTerms are the products of the counts of the whole module.
func (w *walker) moduleTerms() []term {
	m := w.m
	functions := len(m.Bodies)
	locals, squares, values := 0, 0, 0
	for _, b := range m.Bodies {
		locals += b.Locals
	}
	for _, t := range m.Types {
		n := len(t.Params) + len(t.Results)
		values += n
		squares += n * n
	}
	return []term{
		{functions * (len(m.Globals) + len(m.Imports)), "functions times globals", 8, 0},
		{functions * len(m.Types), "functions times types", 12, 0},
		{(functions + len(m.Imports)) * len(m.Exports), "functions times exports", 3, 0},
		{w.importCalls * len(m.Imports), "calls of imported functions times imports", 1, 0},
		{locals, "locals", 20, 8},
		{squares, "types with many parameters and results", 1, 0},
		{values, "parameters and results of types", 100, 90},
		{m.CodeBytes(), "how much code there is", 0, bytesPerByte},
	}
}
