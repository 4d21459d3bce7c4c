// Package extismabi runs unmodified Extism plugins: modules that import
// extism:host/env. It translates their calls to [hostcall.Attempt].
//
// Each instance of a plugin has a kernel of its own, a small wasm module
// (kernel.wat) with the memory that host and guest share. The kernel exports
// everything a guest may import, so a guest's loads and stores never leave
// wasm; the ten functions that need the host are in a host module behind it.
//
//	guest ──► kernel, one per instance ──► host module, one per runtime ──► hostcall
//
// An engine calls [Define] once per wazero runtime. Per instance it creates a
// [Plugin] with [Kernel.NewPlugin], instantiates the linked modules in the order
// of [Order] and the main one last, with imports resolved by [Plugin.Resolve],
// and calls the [Initializers] of each. Per attempt it calls [Plugin.Begin], the
// entry, [Plugin.End] and [Plugin.Reset]. See docs/extism.md.
package extismabi

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/jobhost/jobhost/runtime/extism"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Module is the name that guests import from.
const Module = extism.Module

// hostModule is the name that kernels import from, but guests must not.
const hostModule = "jobhost:extism"

// kernelWasm is kernel.wat; build.sh translates it.
//
//go:embed kernel.wasm
var kernelWasm []byte

// Caller is what the context of every call into a plugin must implement,
// including those that instantiate its modules: it carries the attempt and the
// plugin to the host calls without walking a chain of contexts. It should end
// when the attempt is stopped, since HTTP requests wait under it; from then on
// Attempt should panic, since calls may take long and the guest doesn't check
// its meter in between.
type Caller interface {
	context.Context
	Attempt() *hostcall.Attempt
	Extism() *Plugin
	// Life returns the context of the attempt. What lasts longer than a call is derived from it: the
	// Caller itself goes on to serve the next attempt.
	Life() context.Context
}

// Kernel is shared by all plugins of a wazero runtime. It is safe for
// concurrent use, and freed with its runtime.
type Kernel struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	config  wazero.ModuleConfig
}

// Define defines the host module in a wazero runtime and compiles the kernel.
func Define(ctx context.Context, r wazero.Runtime) (*Kernel, error) {
	b := r.NewHostModuleBuilder(hostModule)
	for _, f := range hostCalls() {
		b.NewFunctionBuilder().WithGoModuleFunction(f.call, f.params, f.results).Export(f.name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return nil, fmt.Errorf("define module %s: %w", hostModule, err)
	}
	module, err := r.CompileModule(ctx, kernelWasm)
	if err != nil {
		return nil, fmt.Errorf("compile the Extism kernel: %w", err)
	}
	// A kernel needs no randomness, but wazero's default source takes 10 µs to seed.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)
	return &Kernel{runtime: r, module: module, config: config}, nil
}

// Options bound one plugin. Zero values mean the defaults of Extism.
type Options struct {
	extism.Limits
	// Memory provides the kernel's memory, and belongs to the caller, who must
	// not free it before [Plugin.Close]; nil = in Go's heap, where growing
	// copies it.
	Memory experimental.LinearMemory
	// KeepVars keeps vars for as long as the plugin, for workers whose
	// instances are not reset. Otherwise they are stored in the worker's
	// [hostcall.KV] or, on hosts without it, last as long as the attempt.
	KeepVars bool
}

// Defaults of [Options].
const (
	defaultMemory   = 64 << 20
	defaultResponse = 50 << 20
)

// NewPlugin makes a kernel for one instance. Close frees it.
func (k *Kernel) NewPlugin(ctx context.Context, o Options) (*Plugin, error) {
	p := newPlugin(o)
	// The caller's resolver and allocator are for guests.
	ctx = experimental.WithImportResolver(ctx, nil)
	ctx = experimental.WithMemoryAllocator(ctx, &p.arena)
	kernel, err := k.runtime.InstantiateModule(ctx, k.module, k.config)
	if err != nil {
		return nil, fmt.Errorf("instantiate the Extism kernel: %w", err)
	}
	p.kernel = kernel
	p.memory = kernel.Memory()
	return p, nil
}

// Resolve resolves the imports of the plugin's modules: to the kernel, a linked
// module, or nil. It is meant for [experimental.WithImportResolver].
func (p *Plugin) Resolve(module string) api.Module {
	if module == Module {
		return p.kernel
	}
	if linked, ok := p.linked[module]; ok {
		return linked
	}
	return nil
}

// Link makes a module importable by those that are instantiated after it.
func (p *Plugin) Link(name string, m api.Module) {
	if p.linked == nil {
		p.linked = map[string]api.Module{}
	}
	p.linked[name] = m
}

// Close frees the kernel. Linked modules must be closed by their owner.
func (p *Plugin) Close(ctx context.Context) error { return p.kernel.Close(ctx) }
