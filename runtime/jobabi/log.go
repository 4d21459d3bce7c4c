package jobabi

import (
	"context"
	"log/slog"

	"github.com/tetratelabs/wazero/api"
)

// logCalls write the log of the job.
func logCalls() []Function {
	return []Function{
		{Name: "log", Args: []Arg{int32Arg("level"), textArg("text", "len")}, call: log},
		{Name: "log_level", Results: []api.ValueType{i32}, call: logLevel},
	}
}

// log(level, ptr, len) writes one line.
func log(ctx context.Context, m api.Module, stack []uint64) {
	level := slog.Level(api.DecodeI32(stack[0]))
	attempt(ctx).Log(level, view(m, "log", stack[1], stack[2]))
}

// log_level() → level returns the lowest level that is kept.
func logLevel(ctx context.Context, _ api.Module, stack []uint64) {
	stack[0] = api.EncodeI32(int32(attempt(ctx).LogLevel()))
}
