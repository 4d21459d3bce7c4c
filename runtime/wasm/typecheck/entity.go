package typecheck

import (
	"fmt"

	"github.com/jobhost/jobhost/runtime/module"
)

// entity checks what an instruction refers to other than locals, globals,
// labels and functions to call, and pops and pushes what depends on it.
func (c *Checker) entity(in *module.Instruction) string {
	switch in.Op {
	case module.MemorySize, module.MemoryGrow, module.MemoryFill:
		return c.memory(in.Immediate)
	case module.MemoryCopy:
		return first(c.memory(in.Immediate), c.memory(uint64(in.Second)))
	case module.MemoryInit:
		return first(c.data(in.Immediate), c.memory(uint64(in.Second)))
	case module.DataDrop:
		return c.data(in.Immediate)
	case module.ElemDrop:
		_, what := c.element(in.Immediate)
		return what
	case module.RefNull:
		c.stack = append(c.stack, byte(in.Immediate))
	case module.RefFunc:
		return c.reference(in.Immediate)
	case module.TableInit, module.TableCopy:
		return c.tables2(in)
	case module.TableGet, module.TableSet, module.TableGrow, module.TableSize, module.TableFill:
		return c.table(in)
	}
	return "" // constants and lanes
}

// first returns the first of two faults.
func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (c *Checker) memory(index uint64) string {
	if index >= uint64(c.memories) {
		return fmt.Sprintf("there is no memory %d", index)
	}
	return ""
}

func (c *Checker) data(index uint64) string {
	switch {
	case c.m.DataCount < 0:
		return "data segments are named by code, but not announced by a data count section"
	case index >= uint64(len(c.m.Data)):
		return fmt.Sprintf("there is no data segment %d", index)
	}
	return ""
}

func (c *Checker) element(index uint64) (t byte, what string) {
	if index >= uint64(len(c.m.Elements)) {
		return 0, fmt.Sprintf("there is no element segment %d", index)
	}
	return c.m.Elements[index].Type, ""
}

func (c *Checker) reference(function uint64) string {
	switch {
	case function >= uint64(len(c.functions)):
		return fmt.Sprintf("there is no function %d", function)
	case !c.declared[function]:
		return fmt.Sprintf("function %d is referred to, but neither exported nor in an element segment or global", function)
	}
	return ""
}

// tableType returns the type of the entries of a table.
func (c *Checker) tableType(index uint64) (t byte, what string) {
	if index >= uint64(len(c.tables)) {
		return 0, fmt.Sprintf("there is no table %d", index)
	}
	return c.tables[index], ""
}

// tables2 checks the instructions that copy into a table: from a segment, or
// from another table.
func (c *Checker) tables2(in *module.Instruction) string {
	to, from := uint64(in.Second), byte(0)
	var what string
	if in.Op == module.TableCopy {
		to = in.Immediate
		from, what = c.tableType(uint64(in.Second))
	} else {
		from, what = c.element(in.Immediate)
	}
	if what != "" {
		return what
	}
	t, what := c.tableType(to)
	if what == "" && t != from {
		return fmt.Sprintf("table %d has entries of %s, what is copied is %s", to, typeName(t), typeName(from))
	}
	return what
}

// table handles the instructions on one table. What is the same for all tables
// is in the table of opcodes.
func (c *Checker) table(in *module.Instruction) string {
	t, what := c.tableType(in.Immediate)
	if what != "" {
		return what
	}
	var pop []byte
	switch in.Op {
	case module.TableGet:
		if what := c.pop(module.I32); what != "" {
			return what
		}
		c.stack = append(c.stack, t)
		return ""
	case module.TableSet:
		pop = []byte{module.I32, t}
	case module.TableGrow:
		pop = []byte{t, module.I32}
	case module.TableFill:
		pop = []byte{module.I32, t, module.I32}
	}
	if what := c.popAll(pop); what != "" {
		return what
	}
	if in.Op == module.TableGrow {
		c.stack = append(c.stack, module.I32)
	}
	return ""
}
