package wasm

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// countdown is a guest that counts down from its parameter:
//
//	(module (memory 1) (func (export "f") (param i32)
//		(loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))
var countdown = []byte{
	0x00, 'a', 's', 'm', 1, 0, 0, 0,
	1, 5, 1, 0x60, 1, 0x7f, 0, // one type: (i32) → ()
	3, 2, 1, 0, // one function of it
	5, 3, 1, 0, 1, // one memory of one page
	7, 5, 1, 1, 'f', 0, 0, // the export
	10, 16, 1, 14, 0, // its code, without locals
	0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, 0x0b,
}

// countFrom takes some seconds: long enough to be interrupted on a busy machine,
// short enough to wait for where interrupting fails.
const countFrom = 1<<31 - 1

// testResults verifies that what the compiler is known to get wrong gives
// correct results after the rewrite. If not, no plugin may run: its results
// would be silently wrong.
func (e *Engine) testResults(ctx context.Context) error { return e.prove(ctx, selfChecks()) }

func (e *Engine) prove(ctx context.Context, checks []selfCheck) error {
	for _, check := range checks {
		got, err := e.result(ctx, check)
		if err == nil && got != check.want {
			err = fmt.Errorf("%s: %d instead of %d", check.name, got, check.want)
		}
		if err != nil {
			return &jobhost.Error{
				Code: jobhost.CodeUnavailable, Cause: err,
				Message: "no plugin is run: code that is compiled for " + goruntime.GOARCH + " gives wrong results",
				Hint:    "run the host on amd64, with the version of wazero that is in go.mod",
			}
		}
	}
	return nil
}

// result runs the rewritten form of a check.
func (e *Engine) result(ctx context.Context, check selfCheck) (got uint64, err error) {
	m, err := module.Read(check.wasm)
	if err != nil {
		return 0, err
	}
	rewritten, err := rewrite.Rewrite(m, rewrite.Options{})
	if err != nil {
		return 0, err
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	guest, err := r.InstantiateWithConfig(ctx, rewritten.Module, moduleConfig)
	if err != nil {
		return 0, err
	}
	results, err := guest.ExportedFunction("f").Call(ctx, check.arg)
	if err != nil {
		return 0, err
	}
	return results[0], nil
}

// testMeter verifies that a guest lets the host stop the world, as its garbage
// collector does, and stops itself when its meter is halted. Both rely on
// details of wazero that its next version may change. A few milliseconds at
// each start are a low price for not finding out through a host that hangs.
func (e *Engine) testMeter(ctx context.Context) (err error) {
	m, err := module.Read(countdown)
	if err != nil {
		return fmt.Errorf("read the test module: %w", err)
	}
	rewritten, err := rewrite.Rewrite(m, rewrite.Options{})
	if err != nil {
		return fmt.Errorf("rewrite the test module: %w", err)
	}
	cache := wazero.NewCompilationCache() // not worth keeping for such a small module
	r := wazero.NewRuntimeWithConfig(ctx, e.runtimeConfig(cache))
	defer func() { err = errors.Join(err, r.Close(ctx), cache.Close(ctx)) }()
	compiled, err := r.CompileModule(ctx, rewritten.Module)
	if err != nil {
		return fmt.Errorf("compile the test module: %w", err)
	}
	guest, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig())
	if err != nil {
		return fmt.Errorf("instantiate the test module: %w", err)
	}
	var meter meter
	meter.attach(guest, rewritten)
	meter.begin(0)
	halted := make(chan struct{})
	time.AfterFunc(time.Millisecond, func() {
		defer close(halted)
		// This returns when all goroutines have stopped: before the guest has
		// ended on its own only if the guest can be preempted.
		goruntime.ReadMemStats(new(goruntime.MemStats))
		meter.halt()
	})
	_, err = guest.ExportedFunction("f").Call(ctx, api.EncodeU32(countFrom))
	<-halted
	if trapName(err) == "" {
		return errors.Join(errors.New("a guest ran to its end instead of being stopped"), err)
	}
	return nil
}
