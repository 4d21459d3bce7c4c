package jobabi

import (
	"context"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// stateCalls are about what tasks report of their progress.
func stateCalls() []Function {
	return []Function{
		{Name: "state_set", Args: []Arg{textArg("tag", "tlen"), int32Arg("status"), textArg("message", "mlen"), bytesArg("payload", "plen")}, Errno: true, call: stateSet},
		{Name: "state_get", Args: []Arg{int32Arg("task"), textArg("tag", "tlen"), textRoomArg("buf", "cap")}, Results: []api.ValueType{i32}, call: stateGet},
		{Name: "state_watch", Args: []Arg{int32Arg("task"), textArg("tag", "tlen")}, Results: []api.ValueType{i32}, call: stateWatch},
	}
}

// maxTag is the longest tag, including the job that may precede it.
const maxTag = jobhost.MaxIDBytes + 1 + jobhost.MaxTagBytes

// state_set(tag, tlen, status, message, mlen, payload, plen) → errno reports how far the task is.
func stateSet(ctx context.Context, m api.Module, stack []uint64) {
	tag, ok := bounded(m, "state_set", stack[0], stack[1], maxTag)
	message := view(m, "state_set", stack[3], stack[4])
	payload := view(m, "state_set", stack[5], stack[6])
	if !ok {
		errno(stack, hostcall.ErrInvalid)
		return
	}
	at := attempt(ctx)
	e := at.SetState(life(ctx), string(tag), api.DecodeI32(stack[2]), message, payload)
	leaveIfOver(ctx, at, e)
	errno(stack, e)
}

// state_get(task, tag, tlen, buf, cap) → n fills the buffer with a state, as JSON, or returns its size.
func stateGet(ctx context.Context, m api.Module, stack []uint64) {
	tag, ok := bounded(m, "state_get", stack[1], stack[2], maxTag)
	if !ok {
		errno(stack, hostcall.ErrInvalid)
		return
	}
	at := attempt(ctx)
	text, e := at.State(life(ctx), api.DecodeI32(stack[0]), string(tag))
	if e != hostcall.OK {
		leaveIfOver(ctx, at, e)
		errno(stack, e)
		return
	}
	fill(m, "state_get", stack, stack[3], stack[4], text)
}

// state_watch(task, tag, tlen) → handle starts to watch states.
func stateWatch(ctx context.Context, m api.Module, stack []uint64) {
	tag, ok := bounded(m, "state_watch", stack[1], stack[2], maxTag)
	if !ok {
		errno(stack, hostcall.ErrInvalid)
		return
	}
	at := attempt(ctx)
	handle, e := at.WatchState(life(ctx), api.DecodeI32(stack[0]), string(tag))
	leaveIfOver(ctx, at, e)
	answer(stack, handle, e)
}
