// Package wasm runs plugins on wazero, the WebAssembly runtime in Go, each job
// in a pristine sandbox.
//
// What happens to a module: it is checked before anything trusts it (preflight), typed and
// rewritten so that it can be metered and stopped (typecheck, rewrite), compiled, initialised
// once, and its memory kept as an image (snapshot). Instances are copies of the image and are
// reset to it after each job.
//
//	bytes ─► preflight ─► rewrite ─► compile ─► initialise ─► image
//	                                                            │
//	  attempt ─► call ─► outcome ─► reset ◄─► instance ◄────────┘
//
// Each plugin has a wazero runtime of its own, since modules that don't trust
// each other must not share one. A plugin's ABI defines its imports and exports
// (abi.go); what happens to its guests becomes an outcome (outcome.go).
package wasm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/wasm/snapshot"
)

// maxPages bounds every memory below 4 GiB, where sums of 32-bit offsets could wrap.
const maxPages = 65535

const pageBytes = 64 << 10

// Config configures an engine.
type Config struct {
	// CacheDir keeps compiled modules across restarts. It is created with mode
	// 0700, and restricted to it if it exists: the files in it are run as
	// native code, provided that this or another engine with the same folder
	// wrote them. Empty = compiled modules are kept in memory only.
	CacheDir string
	// Logger logs faults of the host that guests and tenants must not see in
	// full; nil = they are not logged.
	Logger *slog.Logger
}

// Engine implements [runtime.Engine].
type Engine struct {
	logger *slog.Logger
	cache  *cache // of native code, across restarts
	codes  codes  // native code of all plugins
	room   room   // for compiling
	// polling is true if guests can't be stopped by their meter, so that wazero
	// has to check contexts: see selftest.go.
	polling bool
	dog     *watchdog
	stacks  stacks
	layout  layout

	// loading is held by each Load, and for writing by Close, which waits for them.
	loading sync.RWMutex
	closed  bool // protected by loading

	mu      sync.Mutex           // protects plugins
	plugins map[*Plugin]struct{} // that are open
}

var _ runtime.Engine = (*Engine)(nil)

// New returns an engine. Close frees it.
func New(config Config) (*Engine, error) { return open(config, (*Engine).testMeter) }

// open creates an engine. test returns why guests can't be stopped by their
// meter, nil = they can.
func open(config Config, test func(*Engine, context.Context) error) (*Engine, error) {
	if arch := goruntime.GOARCH; arch != "amd64" && arch != "arm64" {
		return nil, &jobhost.Error{
			Code: jobhost.CodeUnavailable, Message: "plugins can't be compiled for " + arch,
			Hint: "run the host on amd64",
		}
	}
	logger := config.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	snapshot.Prepare()
	cache, err := openCache(config.CacheDir, logger)
	if err != nil {
		return nil, fmt.Errorf("open the compile cache: %w", err)
	}
	e := &Engine{
		logger:  logger,
		cache:   cache,
		room:    newRoom(),
		dog:     newWatchdog(),
		plugins: map[*Plugin]struct{}{},
	}
	ctx := context.Background()
	for _, prove := range []func(context.Context) error{e.testStack, e.testResults} {
		if err := prove(ctx); err != nil {
			return nil, errors.Join(err, e.Close(ctx))
		}
	}
	if err := test(e, ctx); err != nil {
		e.polling = true
		e.logger.WarnContext(ctx, "guests can't be preempted by their meter and will run slower: each loop asks whether to stop", "error", err)
	}
	return e, nil
}

// runtimeConfig is the configuration of all plugins' runtimes, apart from the
// cache.
func (e *Engine) runtimeConfig(cache wazero.CompilationCache) wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().
		WithCompilationCache(cache).
		WithCoreFeatures(api.CoreFeaturesV2).
		WithMemoryLimitPages(maxPages).
		WithDebugInfoEnabled(false).
		WithCloseOnContextDone(e.polling)
}

// Close waits for loads in progress and frees everything, including plugins
// that are still open. No instance may be running. It may be called twice.
func (e *Engine) Close(ctx context.Context) error {
	e.loading.Lock()
	defer e.loading.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	e.mu.Lock()
	plugins := e.plugins
	e.plugins = nil
	e.mu.Unlock()
	var errs []error
	for p := range plugins {
		errs = append(errs, p.free(ctx))
	}
	e.dog.close()
	return errors.Join(append(errs, e.stacks.close())...)
}

// keep registers an open plugin.
func (e *Engine) keep(p *Plugin) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.plugins[p] = struct{}{}
}

// forget reports whether the plugin was still open.
func (e *Engine) forget(p *Plugin) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, open := e.plugins[p]
	delete(e.plugins, p)
	return open
}
