package jobabi

import (
	"context"

	"github.com/tetratelabs/wazero/api"
)

// timeCalls are about the remaining time.
func timeCalls() []Function {
	return []Function{
		{Name: "remaining", Results: []api.ValueType{i64}, call: remaining},
	}
}

// remaining() → ms returns the time left, −1 without a deadline, −3 once cancelled.
func remaining(ctx context.Context, _ api.Module, stack []uint64) {
	stack[0] = api.EncodeI64(attempt(ctx).Remaining())
}
