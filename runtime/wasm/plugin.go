package wasm

import (
	"context"
	"errors"
	"slices"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost/runtime"
)

// Plugin is a compiled module; it implements [runtime.Plugin].
type Plugin struct {
	engine *Engine
	worker string
	limits runtime.Limits
	info   runtime.Info

	runtime wazero.Runtime // of this plugin alone
	module  wazero.CompiledModule
	gate    wazero.CompiledModule
	mailbox bool // jh_buf is exported
	// entries are the places in info.Entries by name; "" is the default.
	entries map[string]int
}

// Info describes the plugin.
func (p *Plugin) Info() runtime.Info {
	info := p.info
	info.Entries = slices.Clone(info.Entries)
	info.Imports = slices.Clone(info.Imports)
	return info
}

// Close frees the plugin. Closing it twice, or after its engine, is fine.
func (p *Plugin) Close(ctx context.Context) error {
	if !p.engine.forget(p) {
		return nil
	}
	return p.free(ctx)
}

// free frees what there is, also of a plugin that was loaded halfway.
func (p *Plugin) free(ctx context.Context) error {
	var errs []error
	if p.runtime != nil {
		errs = append(errs, p.runtime.Close(ctx))
	}
	for _, m := range []wazero.CompiledModule{p.module, p.gate} {
		if m != nil {
			errs = append(errs, m.Close(ctx))
		}
	}
	return errors.Join(errs...)
}
