package preflight

import "github.com/jobhost/jobhost/runtime/module"

// effect returns how many operands an instruction pops and pushes, if its opcode
// alone determines that. The table of opcodes leaves out what has a type that
// depends on something else.
func effect(op uint32) (pop, push int) {
	switch op {
	case module.Drop, module.GlobalSet:
		return 1, 0
	case module.Select, module.SelectTyped:
		return 3, 1
	case module.GlobalGet, module.RefNull:
		return 0, 1
	case module.TableGet, module.RefIsNull:
		return 1, 1
	case module.TableSet:
		return 2, 0
	case module.TableGrow:
		return 2, 1
	case module.TableFill:
		return 3, 0
	}
	o := module.Describe(op)
	if o.Push != 0 {
		push = 1
	}
	return len(o.Pop), push
}
