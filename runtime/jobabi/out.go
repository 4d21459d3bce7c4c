package jobabi

import (
	"context"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// outCalls send something out: messages, and further jobs.
func outCalls() []Function {
	return []Function{
		{Name: "emit", Args: []Arg{bytesArg("data", "len")}, Errno: true, call: emit},
		{Name: "submit", Args: []Arg{bytesArg("spec", "len"), int32Arg("when")}, Results: []api.ValueType{i32}, call: submit},
	}
}

// emit(ptr, len) → errno publishes on the output hub.
func emit(ctx context.Context, m api.Module, stack []uint64) {
	errno(stack, attempt(ctx).Emit(view(m, "emit", stack[0], stack[1])))
}

// submit(spec, len, when) → number submits a job.
func submit(ctx context.Context, m api.Module, stack []uint64) {
	text, ok := bounded(m, "submit", stack[0], stack[1], hostcall.MaxSubmitBytes)
	if !ok {
		errno(stack, hostcall.ErrLimit)
		return
	}
	number, e := attempt(ctx).Submit(text, hostcall.SubmitTime(api.DecodeI32(stack[2])))
	answer(stack, number, e)
}
