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

// config_get(name) → value, or 0 if there is none.
func configGet(ctx context.Context, m api.Module, stack []uint64) {
	p, at := callOf(ctx)
	var value string
	// Config is accessed directly rather than through Info, which would copy the name.
	if name := guestText(m, "config_get", stack[0], stack[1]); len(name) <= maxName {
		value = at.Config[string(name)]
	}
	p.hold(stack, []byte(value))
}

// maxName is the longest name that is looked up. A guest may pass one of gigabytes, and while that is hashed neither
// the guest nor the host's garbage collector can be served.
const maxName = 1 << 20
