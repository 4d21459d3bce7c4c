package wasm

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero"
)

// compile survives what the compiler does not: it panics on some damaged
// modules. It must stay on this goroutine for that, so the compiler's option
// to use several is left alone.
func compile(ctx context.Context, r wazero.Runtime, wasm []byte) (compiled wazero.CompiledModule, err error) {
	defer func() {
		if recover() != nil {
			compiled, err = nil, errors.New("the compiler cannot read it")
		}
	}()
	return r.CompileModule(ctx, wasm)
}
