package jobabi

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// opCalls start something that takes time, or wait for it.
func opCalls() []Function {
	return []Function{
		{Name: "http", Args: []Arg{bytesArg("request", "len")}, Results: []api.ValueType{i32}, call: http},
		{Name: "timer", Args: []Arg{int64Arg("ms")}, Results: []api.ValueType{i32}, call: timer},
		{Name: "wait", Args: []Arg{handlesArg("handles", "n"), int64Arg("timeout")}, Results: []api.ValueType{i32}, call: wait},
		{Name: "read", Args: []Arg{int32Arg("handle"), roomArg("buf", "cap")}, Results: []api.ValueType{i32}, call: read},
		{Name: "recv", Results: []api.ValueType{i32}, call: recv},
		{Name: "drop", Args: []Arg{int32Arg("handle")}, Errno: true, call: drop},
		{Name: "http_defer", Args: []Arg{bytesArg("request", "len"), textArg("entry", "elen"), bytesArg("args", "alen")}, Results: []api.ValueType{i32}, call: httpDefer},
	}
}

// answer puts the result of a call onto the stack: a number, or an errno.
func answer(stack []uint64, n int32, e hostcall.Errno) {
	if e != hostcall.OK {
		n = int32(e)
	}
	stack[0] = api.EncodeI32(n)
}

// http(req, len) → handle begins a request.
func http(ctx context.Context, m api.Module, stack []uint64) {
	text, ok := bounded(m, "http", stack[0], stack[1], hostcall.MaxRequestBytes)
	if !ok {
		errno(stack, hostcall.ErrLimit)
		return
	}
	handle, e := attempt(ctx).Send(text)
	answer(stack, handle, e)
}

// timer(ms) → handle starts a timer.
func timer(ctx context.Context, _ api.Module, stack []uint64) {
	handle, e := attempt(ctx).Timer(int64(stack[0]))
	answer(stack, handle, e)
}

// wait(handles, n, timeout) → index waits until one of the handles is ready.
func wait(ctx context.Context, m api.Module, stack []uint64) {
	n := uint64(uint32(stack[1]))
	if n > hostcall.MaxWait {
		errno(stack, hostcall.ErrInvalid)
		return
	}
	list := view(m, "wait", stack[0], 4*n)
	// On the stack as long as there are few.
	handles := append(make([]int32, 0, 64), make([]int32, n)...)
	for i := range handles {
		handles[i] = int32(binary.LittleEndian.Uint32(list[4*i:]))
	}
	at := attempt(ctx)
	index, e := at.Wait(life(ctx), handles, int64(stack[2]))
	leaveIfOver(ctx, at, e)
	answer(stack, index, e)
}

// leaveIfOver doesn't return to a guest whose time is up: it would continue
// until the engine notices, and could even succeed.
func leaveIfOver(ctx context.Context, at *hostcall.Attempt, e hostcall.Errno) {
	if e == hostcall.ErrStopped && at.Over(ctx) {
		panic(errOver) //nolint:forbidigo // how a host function leaves the guest: wazero recovers it
	}
}

var errOver = errors.New("the attempt is over")

// read(handle, buf, cap) → n copies the next part of a message.
func read(ctx context.Context, m api.Module, stack []uint64) {
	buf := view(m, "read", stack[1], stack[2])
	at := attempt(ctx)
	n, e := at.Read(life(ctx), api.DecodeI32(stack[0]), buf)
	leaveIfOver(ctx, at, e)
	answer(stack, int32(n), e)
}

// recv() → handle of the fiber's inbox.
func recv(ctx context.Context, _ api.Module, stack []uint64) {
	handle, e := attempt(ctx).Receive()
	answer(stack, handle, e)
}

// drop(handle) → errno gives up a handle.
func drop(ctx context.Context, _ api.Module, stack []uint64) {
	errno(stack, attempt(ctx).Drop(api.DecodeI32(stack[0])))
}

// http_defer(req, len, entry, elen, args, alen) → number makes the host send a request.
func httpDefer(ctx context.Context, m api.Module, stack []uint64) {
	text, ok := bounded(m, "http_defer", stack[0], stack[1], hostcall.MaxRequestBytes)
	entry := view(m, "http_defer", stack[2], stack[3])
	args := view(m, "http_defer", stack[4], stack[5])
	if !ok || len(args) > hostcall.MaxArgsBytes {
		errno(stack, hostcall.ErrLimit)
		return
	}
	n, e := attempt(ctx).Defer(text, string(entry), args)
	answer(stack, n, e)
}
