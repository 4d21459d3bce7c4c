package wasm

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// Plugin is a compiled module; it implements [runtime.Plugin].
type Plugin struct {
	engine *Engine
	source runtime.Source // without the bytes
	limits runtime.Limits
	abi    abi
	info   runtime.Info
	// entries are the places in info.Entries by name; "" is the default.
	entries map[string]int
	streams wasiabi.Streams
	// unrestorable says why instances can't be reset; empty = they can.
	unrestorable string

	// stackGrowth is how much the stack of a guest may grow between two yields.
	stackGrowth int64

	runtime wazero.Runtime // of this plugin alone
	parts   []*part        // the main one last

	// turn is held by whoever makes the image, which may take long: others wait
	// for it as long as their contexts last.
	turn  chan struct{}
	image atomic.Pointer[image] // nil until there is an instance
}

// Info describes the plugin.
func (p *Plugin) Info() runtime.Info {
	info := p.info
	info.Entries = slices.Clone(info.Entries)
	info.Imports = slices.Clone(info.Imports)
	return info
}

// copies reports whether instances are made from an image, rather than each
// initialised.
func (p *Plugin) copies() bool {
	return p.source.Isolation != runtime.IsolateFresh && p.unrestorable == ""
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
	for _, part := range p.parts {
		if part.compiled != nil {
			errs = append(errs, part.compiled.Close(ctx))
		}
	}
	if img := p.image.Load(); img != nil {
		errs = append(errs, img.close())
	}
	return errors.Join(errs...)
}
