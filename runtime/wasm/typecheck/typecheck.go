// Package typecheck checks the types of WebAssembly modules: that each
// instruction finds the operands that it takes, and that each index refers to
// something. Package module has checked the structure before.
//
// It follows the algorithm in the appendix of the WebAssembly specification,
// https://webassembly.github.io/spec/core/appendix/algorithm.html, for version
// 2.0. A module must pass it as its author wrote it, before anything is added to
// it: the additions would make indices valid that were not.
package typecheck

import (
	"fmt"
	"slices"

	"github.com/jobhost/jobhost/runtime/module"
)

// Unknown is the type of operands in unreachable code, where there may be any.
const Unknown byte = 0

// Checker checks the functions of a module, one after the other.
type Checker struct {
	m         *module.Module
	functions []uint32            // the types of all functions, imported ones first
	globals   []module.GlobalType // all, imported ones first
	tables    []byte              // the types of the entries of all tables
	memories  int
	declared  []bool // functions that ref.func may name

	groups  []module.LocalGroup
	ends    []uint32 // where each group of locals ends, as an index
	params  []byte
	results []byte
	stack   []byte
	frames  []frame
}

// frame is an open block.
type frame struct {
	op              uint32
	params, results []byte
	height          int  // of the stack below its parameters
	unreachable     bool // the rest of its code is unreachable
}

// New checks everything in a module except its code.
func New(m *module.Module) (*Checker, error) {
	c := &Checker{m: m, memories: m.Imported[module.KindMemory] + len(m.Memories)}
	for i := range m.Imports {
		switch imp := &m.Imports[i]; imp.Kind {
		case module.KindFunction:
			c.functions = append(c.functions, imp.Type)
		case module.KindTable:
			c.tables = append(c.tables, imp.Table.Type)
		case module.KindGlobal:
			c.globals = append(c.globals, imp.Global)
		}
	}
	c.functions = append(c.functions, m.Functions...)
	for _, t := range m.Tables {
		c.tables = append(c.tables, t.Type)
	}
	c.declared = make([]bool, len(c.functions))
	if err := c.checkModule(); err != nil {
		return nil, err
	}
	return c, nil
}

// Begin starts a function, by its index among those defined in the module.
func (c *Checker) Begin(function int) {
	t := &c.m.Types[c.m.Functions[function]]
	c.params, c.results = t.Params, t.Results
	c.groups = c.m.Locals(function)
	c.ends = c.ends[:0]
	end := uint32(len(t.Params))
	for _, g := range c.groups {
		end += g.Count
		c.ends = append(c.ends, end)
	}
	c.stack = c.stack[:0]
	c.frames = append(c.frames[:0], frame{op: module.Block, results: t.Results})
}

// Local returns the type of a local of the function; ok is false if there is
// none with that index.
func (c *Checker) Local(index uint64) (t byte, ok bool) {
	if index < uint64(len(c.params)) {
		return c.params[index], true
	}
	if len(c.ends) == 0 || index >= uint64(c.ends[len(c.ends)-1]) {
		return 0, false
	}
	group, _ := slices.BinarySearch(c.ends, uint32(index)+1) // the first that ends after it
	return c.groups[group].Type, true
}

// Operand returns the type of an operand that the next instruction can pop, 0
// being the top of the stack.
func (c *Checker) Operand(n int) byte {
	f := &c.frames[len(c.frames)-1]
	if at := len(c.stack) - 1 - n; at >= f.height {
		return c.stack[at]
	}
	return Unknown
}

// Reached reports whether the next instruction is reachable.
func (c *Checker) Reached() bool { return !c.frames[len(c.frames)-1].unreachable }

// Error says which instruction is wrong, and why.
type Error struct {
	Offset int // of the instruction, in bytes from the start of the module
	What   string
}

// Error returns the fault and its place.
func (e *Error) Error() string { return fmt.Sprintf("%s, at byte %d", e.What, e.Offset) }
