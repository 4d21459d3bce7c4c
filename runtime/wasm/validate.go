package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// validate checks the types of a module as its author wrote it. It must come
// before the rewrite, which appends functions and globals: an index that points
// to nothing would point to them afterwards, and a guest could reach its own
// meter. wazero's interpreter is the cheapest validator there is.
//
// A verdict is kept beside the compiled modules, since starting with a warm
// cache would take twice as long otherwise.
func (e *Engine) validate(ctx context.Context, digest string, wasm []byte) error {
	mark := ""
	if e.cacheDir != "" {
		mark = filepath.Join(e.cacheDir, "valid-"+digest)
		if _, err := os.Lstat(mark); err == nil {
			return nil
		}
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().
		WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(maxPages).WithDebugInfoEnabled(false))
	compiled, err := compile(ctx, r, wasm)
	if err != nil {
		return invalid("this host runs WebAssembly 2.0, without threads, tail calls, exceptions and garbage collection",
			"is not a valid WebAssembly module: %v", errors.Join(err, r.Close(ctx)))
	}
	if err := errors.Join(compiled.Close(ctx), r.Close(ctx)); err != nil {
		return fmt.Errorf("close the validator: %w", err)
	}
	if mark != "" {
		// Without the mark it is only checked again.
		_ = os.WriteFile(mark, nil, 0o600)
	}
	return nil
}

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
