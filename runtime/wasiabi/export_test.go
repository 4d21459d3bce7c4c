package wasiabi

import (
	"context"

	"github.com/tetratelabs/wazero/api"
)

// Call calls the function as wazero does.
func (f Function) Call(ctx context.Context, m api.Module, stack []uint64) { f.call(ctx, m, stack) }
