package rig

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
	"github.com/jobhost/jobhost/runtime/wasm/typecheck"
)

// Form is a way to run a module.
type Form int

// The forms, the oracle first.
const (
	Interpreted Form = iota
	Compiled
	Rewritten // and compiled
)

// String returns the name of the form in reports.
func (f Form) String() string { return [...]string{"interpreted", "compiled", "rewritten"}[f] }

// NewRuntime returns a runtime for modules in a form.
func NewRuntime(ctx context.Context, f Form) wazero.Runtime {
	config := wazero.NewRuntimeConfigCompiler()
	if f == Interpreted {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	return wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false))
}

// Check reads a module as a host does before rewriting it: its structure and
// its types.
func Check(wasm []byte) (*module.Module, error) {
	m, err := module.Read(wasm)
	if err != nil {
		return nil, err
	}
	c, err := typecheck.New(m)
	if err != nil {
		return nil, err
	}
	for f := range m.Bodies {
		c.Begin(f)
		code := m.Instructions(f)
		for code.Next() {
			if err := c.Step(&code.Instruction); err != nil {
				return nil, fmt.Errorf("function %d: %w", f, err)
			}
		}
		if err := code.Err(); err != nil {
			return nil, fmt.Errorf("function %d: %w", f, err)
		}
	}
	return m, nil
}

// Prepare returns what the engine is given for a module in a form. The result
// of the rewrite is nil for the other forms.
func Prepare(wasm []byte, f Form) ([]byte, *rewrite.Result, error) {
	if f != Rewritten {
		return wasm, nil, nil
	}
	m, err := Check(wasm)
	if err != nil {
		return nil, nil, err
	}
	// The host writes data only to a memory that the module itself defines.
	result, err := rewrite.Rewrite(m, rewrite.Options{KeepData: m.Imported[module.KindMemory] > 0})
	if err != nil {
		return nil, nil, fmt.Errorf("rewrite: %w", err)
	}
	return result.Module, result, nil
}

// Instantiate instantiates a module in a form, writes its segments and runs its
// start function: the engine does so or, if it is rewritten, we do as the host
// does. The runtime must be one for the form. A panic is returned as an error.
func Instantiate(ctx context.Context, r wazero.Runtime, f Form, wasm []byte, name string) (_ api.Module, err error) {
	wasm, result, err := Prepare(wasm, f)
	if err != nil {
		return nil, err
	}
	var instance api.Module
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the engine panicked: %v", p)
		}
		if err != nil && instance != nil {
			err = errors.Join(err, instance.Close(ctx))
		}
	}()
	instance, err = r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName(name).WithStartFunctions())
	if err != nil || result == nil {
		return instance, err
	}
	for _, d := range result.Data {
		if !instance.Memory().Write(d.Offset, d.Bytes) {
			return nil, fmt.Errorf("%d bytes of data at %d don't fit", len(d.Bytes), d.Offset)
		}
	}
	if result.Start != "" {
		if _, err := instance.ExportedFunction(result.Start).Call(ctx); err != nil {
			return nil, fmt.Errorf("start: %w", err)
		}
	}
	return instance, nil
}

// Trap returns why a guest trapped, without the stack; "" = it did not.
func Trap(err error) string {
	if err == nil {
		return ""
	}
	what, _, _ := strings.Cut(err.Error(), "\nwasm stack trace")
	return strings.TrimPrefix(what, "wasm error: ")
}
