package jobabi

import (
	"context"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// jobCalls are about the job itself: its input and its outcome.
func jobCalls() []Function {
	return []Function{
		{Name: "input", Args: []Arg{roomArg("buf", "cap")}, Results: []api.ValueType{i32}, call: input},
		{Name: "output", Args: []Arg{bytesArg("data", "len")}, Errno: true, call: output},
		{Name: "fail", Args: []Arg{int32Arg("kind"), textArg("text", "len")}, Errno: true, call: fail},
		{Name: "info", Args: []Arg{textArg("key", "klen"), textRoomArg("buf", "cap")}, Results: []api.ValueType{i32}, call: info},
	}
}

// input(buf, cap) → n fills the buffer with the payload, or returns its size.
func input(ctx context.Context, m api.Module, stack []uint64) {
	fill(m, "input", stack, stack[0], stack[1], attempt(ctx).Input)
}

// output(ptr, len) → errno appends to the result.
func output(ctx context.Context, m api.Module, stack []uint64) {
	errno(stack, attempt(ctx).AppendOutput(view(m, "output", stack[0], stack[1])))
}

// fail(kind, ptr, len) → errno sets how the attempt ends.
func fail(ctx context.Context, m api.Module, stack []uint64) {
	kind := hostcall.FailKind(api.DecodeI32(stack[0]))
	errno(stack, attempt(ctx).Fail(kind, view(m, "fail", stack[1], stack[2])))
}

// info(key, klen, buf, cap) → n fills the buffer with the information under a key, or returns its size.
func info(ctx context.Context, m api.Module, stack []uint64) {
	key, ok := bounded(m, "info", stack[0], stack[1], hostcall.MaxKeyBytes)
	if !ok {
		errno(stack, hostcall.ErrInvalid)
		return
	}
	value, e := attempt(ctx).Info(string(key))
	if e != hostcall.OK {
		errno(stack, e)
		return
	}
	fill(m, "info", stack, stack[2], stack[3], value)
}
