package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost"
)

// recursion is a guest that calls itself endlessly:
//
//	(module (func (export "f") (call 0)))
var recursion = []byte{
	0x00, 'a', 's', 'm', 1, 0, 0, 0,
	1, 4, 1, 0x60, 0, 0, // one type: () → ()
	3, 2, 1, 0, // one function of it
	7, 5, 1, 1, 'f', 0, 0, // the export
	10, 6, 1, 4, 0, 0x10, 0, 0x0b, // its code, without locals
}

// testStack determines where wazero keeps the stack of a function, and verifies
// that a guest that is given one stays on it.
func (e *Engine) testStack(ctx context.Context) error {
	if err := e.overflow(ctx); err != nil {
		return &jobhost.Error{
			Code: jobhost.CodeUnavailable, Message: "plugins can't be run: the stacks of guests can't be bounded", Cause: err,
			Hint: "build jobhost with the version of wazero that is in its go.mod",
		}
	}
	return nil
}

func (e *Engine) overflow(ctx context.Context) (err error) {
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	guest, err := r.InstantiateWithConfig(ctx, recursion, moduleConfig)
	if err != nil {
		return fmt.Errorf("make the test module: %w", err)
	}
	f := guest.ExportedFunction("f")
	if e.layout, err = layoutOf(f); err != nil {
		return err
	}
	whole, err := e.stacks.take()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.stacks.give(whole)) }()
	e.layout.install(f, &stack{memory: whole.memory[len(whole.memory)-keptStack:]})
	if _, err := f.Call(ctx); trapName(err) != stackOverflow {
		return fmt.Errorf("an endless recursion ended otherwise than by an overflow: %w", err)
	}
	below := whole.memory[len(whole.memory)-2*keptStack : len(whole.memory)-keptStack]
	if bytes.ContainsFunc(below, func(r rune) bool { return r != 0 }) {
		return errors.New("a guest has left its stack")
	}
	return nil
}
