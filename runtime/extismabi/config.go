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
	var value string
	// Config is looked up here rather than by Info, which would copy the name.
	if name := guestText(m, "config_get", stack[0], stack[1]); len(name) <= maxName {
		value = at.Config[string(name)]
	}
	p.hold(stack, []byte(value))
}

// maxName is the longest name that is looked up. A guest may ask for one of gigabytes, and neither it nor the host's
// garbage collector can be served while that is hashed.
const maxName = 1 << 20
