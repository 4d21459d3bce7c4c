package runtime

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost"
)

// Engines is an engine composed of others, each of which loads its kind of plugin.
type Engines struct {
	Inline    Engine // Wasm in the process of the host
	Sandboxes Engine // Wasm in processes of its own; nil = not available
	Native    Engine // executables; nil = not available
}

var _ Engine = (*Engines)(nil)

// Load implements [Engine].
func (e *Engines) Load(ctx context.Context, src Source) (Plugin, error) {
	engine, kind := e.Inline, "sandboxes"
	switch {
	case src.ABI == ABIProcess:
		engine, kind = e.Native, "native plugins"
	case src.Sandbox == SandboxProcess:
		engine, kind = e.Sandboxes, "sandboxes in processes of their own"
	}
	if engine == nil {
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Field: "worker", Message: "this host has no " + kind}
	}
	return engine.Load(ctx, src)
}

// Close implements [Engine].
func (e *Engines) Close(ctx context.Context) error {
	var errs []error
	for _, engine := range []Engine{e.Inline, e.Sandboxes, e.Native} {
		if engine != nil {
			errs = append(errs, engine.Close(ctx))
		}
	}
	return errors.Join(errs...)
}
