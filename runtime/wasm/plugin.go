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
	// entries maps names to indices in info.Entries; "" is the default.
	entries map[string]int
	streams wasiabi.Streams
	// unrestorable says why instances can't be reset; empty = they can.
	unrestorable string

	runtime wazero.Runtime // of this plugin alone
	parts   []*part        // the main one last
	code    *code          // of the parts; nil = they are not compiled

	// turn is held while the image is created, which may take long: others wait
	// for it until their contexts end.
	turn  chan struct{}
	image atomic.Pointer[image] // nil until there is an instance
}

// Info describes the plugin.
func (p *Plugin) Info() runtime.Info {
	info := p.info
	info.Entries = slices.Clone(info.Entries)
	info.Imports = slices.Clone(info.Imports)
	info.Features = slices.Clone(info.Features)
	return info
}

// copies reports whether instances are copied from an image, rather than each
// initialised.
func (p *Plugin) copies() bool {
	return p.source.Isolation != runtime.IsolateFresh && p.unrestorable == ""
}

// Close frees the plugin. It may be called twice, or after closing its engine.
func (p *Plugin) Close(ctx context.Context) error {
	if !p.engine.forget(p) {
		return nil
	}
	return p.free(ctx)
}

// free frees everything, even of a plugin that was only partly loaded.
func (p *Plugin) free(ctx context.Context) error {
	errs := []error{p.dropCode(ctx)}
	if img := p.image.Load(); img != nil {
		errs = append(errs, img.close())
	}
	return errors.Join(errs...)
}
