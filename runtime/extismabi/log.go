package extismabi

import (
	"context"
	"log/slog"
	"math"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// logCalls write the log of the job.
func logCalls() []hostCall {
	return []hostCall{
		{name: "log", params: []api.ValueType{i32, i32, i32}, call: log},
		{name: "get_log_level", results: []api.ValueType{i32}, call: logLevel},
	}
}

// levels are Extism's, trace to error, in terms of package slog.
var levels = [...]slog.Level{
	hostcall.LevelDebug - 4, hostcall.LevelDebug, hostcall.LevelInfo, hostcall.LevelWarn, hostcall.LevelError,
}

// off is the level at which nothing is kept.
const off = math.MaxInt32

// log(level, text) writes one line. The level comes from the kernel.
func log(ctx context.Context, m api.Module, stack []uint64) {
	_, at := callOf(ctx)
	at.Log(levels[uint32(stack[0])], guestText(m, "log", stack[1], stack[2]))
}

// get_log_level() → the lowest level that is kept.
func logLevel(ctx context.Context, _ api.Module, stack []uint64) {
	_, at := callOf(ctx)
	lowest := int32(off)
	for i, level := range levels {
		if level >= at.LogLevel() {
			lowest = int32(i)
			break
		}
	}
	stack[0] = api.EncodeI32(lowest)
}
