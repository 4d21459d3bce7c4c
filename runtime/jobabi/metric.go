package jobabi

import (
	"context"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// metricCalls are about the guest's own metrics and its progress.
func metricCalls() []Function {
	return []Function{
		{Name: "metric", Args: []Arg{int32Arg("kind"), textArg("name", "nlen")}, Results: []api.ValueType{i32}, call: metric},
		{Name: "observe", Args: []Arg{int32Arg("id"), float64Arg("value")}, Errno: true, call: observe},
		{Name: "progress", Args: []Arg{int64Arg("done"), int64Arg("total")}, call: progress},
	}
}

// metric(kind, name, nlen) → id registers a metric.
func metric(ctx context.Context, m api.Module, stack []uint64) {
	name, ok := bounded(m, "metric", stack[1], stack[2], hostcall.MaxMetricBytes)
	if !ok {
		errno(stack, hostcall.ErrInvalid)
		return
	}
	id, e := attempt(ctx).Metric(hostcall.MetricKind(api.DecodeI32(stack[0])), string(name))
	answer(stack, id, e)
}

// observe(id, value) → errno adds, sets or counts a value.
func observe(ctx context.Context, _ api.Module, stack []uint64) {
	errno(stack, attempt(ctx).Observe(api.DecodeI32(stack[0]), api.DecodeF64(stack[1])))
}

// progress(done, total) reports how far the attempt is.
func progress(ctx context.Context, _ api.Module, stack []uint64) {
	attempt(ctx).Progress(int64(stack[0]), int64(stack[1]))
}
