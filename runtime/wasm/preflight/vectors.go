package preflight

import (
	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/module"
)

// usesVectors reports whether an instruction operates on vectors, or names
// their type. Instructions that only move values, such as local.get, are
// ignored: they have no vectors to move unless something else names the type.
func usesVectors(i *module.Instruction) bool {
	switch i.Op {
	case module.Block, module.Loop, module.If:
		return i.Block.Index < 0 && i.Block.Value == module.V128
	case module.SelectTyped:
		return i.Type == module.V128
	}
	return module.IsVector(i.Op)
}

// checkVectors rejects modules that have vectors outside the code. Those in the
// code were found before, since an error that names the function says more.
func checkVectors(m *module.Module, l *Limits) error {
	if m.Vectors && !l.Vectors {
		return vectorsRefused("has vectors (SIMD) among its types, globals or locals")
	}
	return nil
}

// vectorsRefused is the error of a module that uses vectors although it may not.
func vectorsRefused(message string) error {
	return &jobhost.Error{
		Code: jobhost.CodeInvalid, Field: "features", Message: message,
		Hint: `set features = ["simd"] for the worker, or build it without them (-mno-simd128)`,
	}
}
