package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/jobabi"
)

// Load checks and compiles a plugin. What is wrong with the file is an error
// with code [jobhost.CodeInvalid] that says what to do about it. Compiling
// can't be interrupted, so ctx counts only before it.
func (e *Engine) Load(ctx context.Context, src runtime.Source) (runtime.Plugin, error) {
	e.loading.RLock()
	defer e.loading.RUnlock()
	if e.closed {
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the engine is closed"}
	}
	p := &Plugin{engine: e, worker: src.Worker, limits: src.Limits.OrDefaults()}
	p.limits.MemoryBytes = wholePages(p.limits.MemoryBytes)
	if err := p.load(ctx, src); err != nil {
		_ = p.free(context.WithoutCancel(ctx)) // what counts is why it was not loaded
		return nil, named(src, err)
	}
	e.keep(p)
	return p, nil
}

func (p *Plugin) load(ctx context.Context, src runtime.Source) error {
	if len(src.Bytes) > MaxModuleBytes {
		return invalid("leave out debug information: strip it, or link with -s", "is %d bytes long, more than %d", len(src.Bytes), MaxModuleBytes)
	}
	if what, hint := notCore(src.Bytes); what != "" {
		return invalid(hint, "is %s", what)
	}
	outline, err := readOutline(src.Bytes)
	if err != nil {
		return invalid("build it again, and compare its checksum if it was copied", "is not a valid WebAssembly module: %v", err)
	}
	if err := p.checkMemory(outline); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.newRuntime(ctx); err != nil {
		return err
	}
	if err := p.checkImports(outline); err != nil {
		return err
	}
	sum := sha256.Sum256(src.Bytes)
	p.info.SHA256 = hex.EncodeToString(sum[:])
	p.info.Size = len(src.Bytes)
	p.info.ABI = "jobhost"
	if p.module, err = p.compileOnce(ctx, src.Bytes); err != nil {
		return err
	}
	if err := p.checkContract(src.Entry); err != nil {
		return err
	}
	return p.compileGate(ctx)
}

// compileGate compiles the plugin's gate.
func (p *Plugin) compileGate(ctx context.Context) error {
	p.engine.gating.Lock()
	defer p.engine.gating.Unlock()
	err := p.engine.mend(ctx, func() (err error) {
		p.gate, err = p.engine.gates.CompileModule(ctx, gateModule(p.info.Entries, p.mailbox))
		return err
	})
	if err != nil {
		return fmt.Errorf("compile the gate: %w", err)
	}
	return nil
}

// wholePages rounds a limit up to pages, of which there are fewer than 65,536.
func wholePages(n int64) int64 {
	pages := n / pageBytes
	if n%pageBytes > 0 {
		pages++
	}
	return min(max(pages, 0), maxPages) * pageBytes
}

// newRuntime makes the plugin's own wazero runtime with the modules it may import.
func (p *Plugin) newRuntime(ctx context.Context) error {
	config := p.engine.runtimeConfig().WithCloseOnContextDone(true)
	p.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := p.engine.agreeOnTypes(ctx, p.runtime); err != nil {
		return err
	}
	if err := jobabi.Instantiate(ctx, p.runtime); err != nil {
		return err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err != nil {
		return fmt.Errorf("define module %s: %w", wasi_snapshot_preview1.ModuleName, err)
	}
	return nil
}

// compileOnce compiles a module, or takes it from the cache. Compilations of
// the same bytes at the same time wait for the first of them.
func (p *Plugin) compileOnce(ctx context.Context, module []byte) (wazero.CompiledModule, error) {
	defer p.engine.compiling.lock(p.info.SHA256)()
	var compiled wazero.CompiledModule
	err := p.engine.mend(ctx, func() (err error) {
		compiled, err = compile(ctx, p.runtime, module)
		return err
	})
	if err != nil {
		return nil, invalid("this host runs WebAssembly 2.0, without threads, tail calls, exceptions and garbage collection",
			"is not a valid WebAssembly module: %v", err)
	}
	return compiled, nil
}

// compile survives what the compiler does not: it panics on some damaged
// modules. It must stay on this goroutine for that, so the compiler's option
// to use several is left alone.
func compile(ctx context.Context, r wazero.Runtime, module []byte) (compiled wazero.CompiledModule, err error) {
	defer func() {
		if recover() != nil {
			compiled, err = nil, errors.New("the compiler cannot read it")
		}
	}()
	return r.CompileModule(ctx, module)
}

// invalid is an error about the file; the text follows its name.
func invalid(hint, format string, args ...any) error {
	return &jobhost.Error{Code: jobhost.CodeInvalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// named puts the name of the plugin's file, or of the worker without one, in
// front of the message.
func named(src runtime.Source, err error) error {
	subject := "the plugin of worker " + src.Worker
	if src.Path != "" {
		subject = filepath.Base(src.Path)
	}
	e, ok := errors.AsType[*jobhost.Error](err)
	if !ok {
		return fmt.Errorf("load %s: %w", subject, err)
	}
	e.Message = strings.TrimSpace(subject + " " + e.Message)
	return e
}
