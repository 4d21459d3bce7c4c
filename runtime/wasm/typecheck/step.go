package typecheck

import (
	"fmt"

	"github.com/jobhost/jobhost/runtime/module"
)

// Step checks one instruction and applies its effect. Its errors are of type
// [*Error]. After the last instruction of a function that package module has
// read completely, the function is valid.
func (c *Checker) Step(in *module.Instruction) error {
	if len(c.frames) == 0 {
		return &Error{in.Start, "a function goes on after its end"}
	}
	if what := c.step(in); what != "" {
		return &Error{in.Start, what}
	}
	return nil
}

// step returns what is wrong, or "".
func (c *Checker) step(in *module.Instruction) string {
	switch in.Op {
	case module.LocalGet, module.LocalSet, module.LocalTee:
		return c.local(in)
	case module.Block, module.Loop, module.If:
		return c.open(in)
	case module.Else, module.End:
		return c.end(in.Op)
	case module.Br, module.BrIf, module.BrTable, module.Return, module.Unreachable:
		return c.branch(in)
	case module.Call, module.CallIndirect:
		return c.call(in)
	case module.Drop, module.Select, module.SelectTyped:
		return c.pick(in)
	}
	o := module.Describe(in.Op)
	switch {
	case in.Op == module.GlobalGet || in.Op == module.GlobalSet:
		return c.global(in)
	case o.Accesses():
		if c.memories == 0 {
			return o.Name + " in a module without a memory"
		}
	case o.Operands != module.NoOperands:
		if what := c.entity(in); what != "" {
			return what
		}
	}
	return c.simple(in.Op, o)
}

// simple pops and pushes what the table of opcodes says.
func (c *Checker) simple(op uint32, o *module.Opcode) string {
	if op == module.RefIsNull {
		t, what := c.popAny()
		if what == "" && t != Unknown && t != module.FuncRef && t != module.ExternRef {
			return "ref.is_null of " + typeName(t)
		}
		if what != "" {
			return what
		}
	}
	for i := len(o.Pop) - 1; i >= 0; i-- {
		if what := c.pop(o.Pop[i]); what != "" {
			return what
		}
	}
	if o.Push != 0 {
		c.stack = append(c.stack, o.Push)
	}
	return ""
}

// local handles local.get, local.set and local.tee.
func (c *Checker) local(in *module.Instruction) string {
	t, ok := c.Local(in.Immediate)
	if !ok {
		return fmt.Sprintf("there is no local %d", in.Immediate)
	}
	if in.Op != module.LocalGet {
		if what := c.pop(t); what != "" {
			return what
		}
	}
	if in.Op != module.LocalSet {
		c.stack = append(c.stack, t)
	}
	return ""
}

func (c *Checker) global(in *module.Instruction) string {
	if in.Immediate >= uint64(len(c.globals)) {
		return fmt.Sprintf("there is no global %d", in.Immediate)
	}
	g := c.globals[in.Immediate]
	if in.Op == module.GlobalGet {
		c.stack = append(c.stack, g.Type)
		return ""
	}
	if !g.Mutable {
		return fmt.Sprintf("global %d is set, which is not mutable", in.Immediate)
	}
	return c.pop(g.Type)
}

// pick handles drop and select.
func (c *Checker) pick(in *module.Instruction) string {
	if in.Op == module.Drop {
		_, what := c.popAny()
		return what
	}
	if what := c.pop(module.I32); what != "" {
		return what
	}
	if in.Op == module.SelectTyped {
		for range 2 {
			if what := c.pop(in.Type); what != "" {
				return what
			}
		}
		c.stack = append(c.stack, in.Type)
		return ""
	}
	a, what := c.popAny()
	if what != "" {
		return what
	}
	b, what := c.popAny()
	switch {
	case what != "":
		return what
	case isReference(a) || isReference(b):
		return "a select of references must have their type"
	case a != b && a != Unknown && b != Unknown:
		return fmt.Sprintf("a select of %s and %s", typeName(b), typeName(a))
	}
	if a == Unknown {
		a = b
	}
	c.stack = append(c.stack, a)
	return ""
}

func isReference(t byte) bool { return t == module.FuncRef || t == module.ExternRef }

// call handles call and call_indirect.
func (c *Checker) call(in *module.Instruction) string {
	index := in.Immediate
	if in.Op == module.Call {
		if index >= uint64(len(c.functions)) {
			return fmt.Sprintf("there is no function %d", index)
		}
		index = uint64(c.functions[index])
	} else {
		switch {
		case index >= uint64(len(c.m.Types)):
			return fmt.Sprintf("there is no type %d", index)
		case int(in.Second) >= len(c.tables):
			return fmt.Sprintf("there is no table %d", in.Second)
		case c.tables[in.Second] != module.FuncRef:
			return fmt.Sprintf("table %d has no functions to be called", in.Second)
		}
		if what := c.pop(module.I32); what != "" {
			return what
		}
	}
	t := &c.m.Types[index]
	if what := c.popAll(t.Params); what != "" {
		return what
	}
	c.stack = append(c.stack, t.Results...)
	return ""
}

// pop pops an operand of a type.
func (c *Checker) pop(want byte) string {
	if n := len(c.stack); n > c.frames[len(c.frames)-1].height && c.stack[n-1] == want { // most are correct
		c.stack = c.stack[:n-1]
		return ""
	}
	got, what := c.popAny()
	if what == "" && got != want && got != Unknown && want != Unknown {
		return fmt.Sprintf("an operand is %s instead of %s", typeName(got), typeName(want))
	}
	return what
}

// popAny pops an operand of any type.
func (c *Checker) popAny() (t byte, what string) {
	f := &c.frames[len(c.frames)-1]
	if len(c.stack) > f.height {
		t = c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		return t, ""
	}
	if f.unreachable {
		return Unknown, ""
	}
	return Unknown, "an operand is missing"
}

// popAll pops operands, the last of which is on top.
func (c *Checker) popAll(types []byte) string {
	for i := len(types) - 1; i >= 0; i-- {
		if what := c.pop(types[i]); what != "" {
			return what
		}
	}
	return ""
}
