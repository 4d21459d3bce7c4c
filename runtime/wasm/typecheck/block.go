package typecheck

import (
	"fmt"

	"github.com/jobhost/jobhost/runtime/module"
)

// open handles block, loop and if.
func (c *Checker) open(in *module.Instruction) string {
	if in.Op == module.If {
		if what := c.pop(module.I32); what != "" {
			return what
		}
	}
	params, results, ok := c.blockType(in.Block)
	if !ok {
		return fmt.Sprintf("there is no type %d", in.Block.Index)
	}
	if what := c.popAll(params); what != "" {
		return what
	}
	c.frames = append(c.frames, frame{op: in.Op, params: params, results: results, height: len(c.stack)})
	c.stack = append(c.stack, params...)
	return ""
}

// values has each value type once, for the types of blocks that return one.
var values = [...]byte{module.I32, module.I64, module.F32, module.F64, module.V128, module.FuncRef, module.ExternRef}

func (c *Checker) blockType(b module.BlockType) (params, results []byte, ok bool) {
	if b.Index >= 0 {
		if b.Index >= len(c.m.Types) {
			return nil, nil, false
		}
		t := &c.m.Types[b.Index]
		return t.Params, t.Results, true
	}
	for i, v := range values {
		if v == b.Value {
			return nil, values[i : i+1], true
		}
	}
	return nil, nil, true
}

// end handles else and end.
func (c *Checker) end(op uint32) string {
	f := c.frames[len(c.frames)-1]
	if what := c.popAll(f.results); what != "" {
		return what
	}
	if len(c.stack) != f.height {
		return "operands are left over at the end of a block"
	}
	if op == module.Else {
		if f.op != module.If {
			return "an else that belongs to no if"
		}
		c.frames[len(c.frames)-1] = frame{op: module.Else, params: f.params, results: f.results, height: f.height}
		c.stack = append(c.stack, f.params...)
		return ""
	}
	if f.op == module.If && string(f.params) != string(f.results) {
		return "an if without an else must return what it takes"
	}
	c.frames = c.frames[:len(c.frames)-1]
	c.stack = append(c.stack, f.results...)
	return ""
}

// branch handles what leaves a block.
func (c *Checker) branch(in *module.Instruction) string {
	switch in.Op {
	case module.Unreachable:
		c.cut()
		return ""
	case module.Return:
		if what := c.popAll(c.results); what != "" {
			return what
		}
		c.cut()
		return ""
	case module.BrTable:
		return c.branches(in.Depths)
	case module.BrIf:
		if what := c.pop(module.I32); what != "" {
			return what
		}
	}
	types, ok := c.label(in.Immediate)
	if !ok {
		return fmt.Sprintf("there is no label %d", in.Immediate)
	}
	if what := c.popAll(types); what != "" {
		return what
	}
	if in.Op == module.Br {
		c.cut()
		return ""
	}
	c.stack = append(c.stack, types...)
	return ""
}

// branches handles br_table, whose targets all take what is on the stack.
func (c *Checker) branches(depths []uint32) string {
	if what := c.pop(module.I32); what != "" {
		return what
	}
	last, ok := c.label(uint64(depths[len(depths)-1]))
	if !ok {
		return fmt.Sprintf("there is no label %d", depths[len(depths)-1])
	}
	checked := -1 // the previous target, since many are the same
	for _, d := range depths[:len(depths)-1] {
		if int(d) == checked {
			continue
		}
		checked = int(d)
		types, ok := c.label(uint64(d))
		switch {
		case !ok:
			return fmt.Sprintf("there is no label %d", d)
		case len(types) != len(last):
			return fmt.Sprintf("the targets of a br_table take %d and %d operands", len(types), len(last))
		}
		for i := range types { // without popping them
			want := types[len(types)-1-i]
			if got := c.Operand(i); got != want && got != Unknown {
				return fmt.Sprintf("an operand is %s instead of %s", typeName(got), typeName(want))
			} else if got == Unknown && c.Reached() {
				return "an operand is missing"
			}
		}
	}
	if what := c.popAll(last); what != "" {
		return what
	}
	c.cut()
	return ""
}

// label returns what a branch to a label takes; ok is false if there is none.
func (c *Checker) label(depth uint64) (types []byte, ok bool) {
	if depth >= uint64(len(c.frames)) {
		return nil, false
	}
	f := &c.frames[len(c.frames)-1-int(depth)]
	if f.op == module.Loop {
		return f.params, true
	}
	return f.results, true
}

// cut begins unreachable code.
func (c *Checker) cut() {
	f := &c.frames[len(c.frames)-1]
	c.stack = c.stack[:f.height]
	f.unreachable = true
}
