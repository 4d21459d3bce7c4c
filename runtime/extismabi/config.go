package extismabi

import (
	"context"

	"github.com/tetratelabs/wazero/api"
)

// configCalls read the worker's config.
func configCalls() []hostCall {
	return []hostCall{
		{name: "config_get", params: []api.ValueType{i32, i32}, results: []api.ValueType{i32}, call: configGet},
	}
}

// config_get(name) → value, or 0 without one.
func configGet(ctx context.Context, m api.Module, stack []uint64) {
	p, at := callOf(ctx)
	// Config is looked up here rather than by Info, which would copy the name.
	value := at.Config[string(text(m, "config_get", stack[0], stack[1]))]
	p.hold(stack, []byte(value))
}
