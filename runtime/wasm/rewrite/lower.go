package rewrite

import "github.com/jobhost/jobhost/runtime/module"

// wazero 1.12's compiler for amd64 gives wrong results for some instructions
// when many floats or vectors are live at once: its register allocator assumes
// that a value is written once, and keeps a copy that is older than the last
// change. These are copysign, select of floats and vectors, and the vector
// instructions in lower_vector.go. The rewrite replaces them with others that
// have the same result.

// lowering returns how an instruction is written differently; nil = it is
// written unchanged. It must be called before the type checker handles the
// instruction, since it looks at the operands.
func (f *functionWriter) lowering(in *module.Instruction) func(*functionWriter, *module.Instruction) {
	switch {
	case in.Op == module.I32Const && isHighAddress(int32(in.Immediate)):
		return (*functionWriter).highConstant
	case in.Op == module.RefFunc:
		return (*functionWriter).reference
	case isOrdered(in.Op):
		if f.maybeMasked(f.f, f.top) {
			return (*functionWriter).compare
		}
	case in.Op == opF32Copysign:
		return (*functionWriter).copysign32
	case in.Op == opF64Copysign:
		return (*functionWriter).copysign64
	case in.Op == module.Select:
		return f.selecting(f.types.Operand(1), f.types.Operand(2))
	case in.Op == module.SelectTyped:
		return f.selecting(in.Type, in.Type)
	case module.IsVector(in.Op):
		return lowerVector(in.Op)
	}
	return nil
}

// compare writes a comparison whose right operand may be the result of an and:
// see compare.go.
func (f *functionWriter) compare(in *module.Instruction) {
	c := &f.code
	if in.Op <= opI32GeU {
		c.i32(0)
		c.op(opI32Or)
	} else {
		c.i64(0)
		c.op(opI64Or)
	}
	f.plain(in)
}

func (f *functionWriter) copysign32(*module.Instruction) {
	c, sign := &f.code, f.local(module.I32, 0)
	c.op(opI32ReinterpretF32)
	c.i32(-1 << 31)
	c.op(opI32And)
	c.set(sign)
	c.op(opI32ReinterpretF32)
	c.i32(1<<31 - 1)
	c.op(opI32And)
	c.get(sign)
	c.op(opI32Or, opF32ReinterpretI32)
}

func (f *functionWriter) copysign64(*module.Instruction) {
	c, sign := &f.code, f.local(module.I64, 0)
	c.op(opI64ReinterpretF64)
	c.i64(-1 << 63)
	c.op(opI64And)
	c.set(sign)
	c.op(opI64ReinterpretF64)
	c.i64(1<<63 - 1)
	c.op(opI64And)
	c.get(sign)
	c.op(opI64Or, opF64ReinterpretI64)
}

// selecting returns how a select is written; its two operand types are the same
// unless one is unknown.
func (f *functionWriter) selecting(a, b byte) func(*functionWriter, *module.Instruction) {
	if a == 0 {
		a = b
	}
	switch a {
	case module.F32:
		return func(f *functionWriter, _ *module.Instruction) {
			f.selectFloat(module.I32, opI32ReinterpretF32, opF32ReinterpretI32)
		}
	case module.F64:
		return func(f *functionWriter, _ *module.Instruction) {
			f.selectFloat(module.I64, opI64ReinterpretF64, opF64ReinterpretI64)
		}
	case module.V128:
		return (*functionWriter).selectVector
	case module.FuncRef, module.ExternRef:
		return nil
	}
	return func(f *functionWriter, _ *module.Instruction) { f.code.op(opSelect) }
}

// selectFloat selects one of two floats as integers.
func (f *functionWriter) selectFloat(as byte, there, back byte) {
	c := &f.code
	condition, second := f.local(module.I32, 0), f.local(as, 1)
	c.set(condition)
	c.op(there)
	c.set(second)
	c.op(there)
	c.get(second)
	c.get(condition)
	c.op(opSelect, back)
}

// selectVector selects one of two vectors by a branch.
func (f *functionWriter) selectVector(*module.Instruction) {
	c := &f.code
	condition, first, second := f.local(module.I32, 0), f.local(module.V128, 0), f.local(module.V128, 1)
	c.set(condition)
	c.set(second)
	c.set(first)
	c.get(condition)
	c.op(byte(module.If), module.V128)
	c.get(first)
	c.op(byte(module.Else))
	c.get(second)
	c.end()
}
