package wasm

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero"
)

// compile recovers from panics of the compiler, which occur on some damaged
// modules. For that it must stay on this goroutine, so the compiler's option to
// use several is not used.
func compile(ctx context.Context, r wazero.Runtime, wasm []byte) (compiled wazero.CompiledModule, err error) {
	defer func() {
		if recover() != nil {
			compiled, err = nil, errors.New("the compiler cannot read it")
		}
	}()
	return r.CompileModule(ctx, wasm)
}
