package jobabi

import (
	"context"

	"github.com/tetratelabs/wazero/api"
)

// outCalls send something out while the attempt runs.
func outCalls() []Function {
	return []Function{
		{Name: "emit", Params: []api.ValueType{i32, i32}, Names: []string{"ptr", "len"}, Results: []api.ValueType{i32}, call: emit},
	}
}

// emit(ptr, len) → errno publishes on the output hub.
func emit(ctx context.Context, m api.Module, stack []uint64) {
	errno(stack, attempt(ctx).Emit(view(m, "emit", stack[0], stack[1])))
}
