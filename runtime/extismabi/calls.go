package extismabi

import (
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// hostCall is a function of the host module, which kernels call. Text is passed
// as address and length in the kernel's memory; a length of 0 means no block.
type hostCall struct {
	name            string
	params, results []api.ValueType
	call            api.GoModuleFunc
}

func hostCalls() []hostCall {
	return slices.Concat(
		[]hostCall{{name: "take", params: []api.ValueType{i32}, call: take}, {name: "pause", call: pause}},
		configCalls(), varCalls(), httpCalls(), logCalls(),
	)
}

// callOf returns the plugin and the attempt of a call. Every call comes from an
// instance that was entered with a Caller, so anything else is a bug in the
// host.
func callOf(ctx context.Context) (*Plugin, *hostcall.Attempt) {
	c := ctx.(Caller)
	return c.Extism(), c.Attempt()
}

// guestText returns the bytes at (place, length) of the stack, valid until the
// guest continues.
func guestText(m api.Module, call string, place, length uint64) []byte {
	if uint32(length) == 0 {
		return nil
	}
	b, ok := m.Memory().Read(uint32(place), uint32(length))
	if !ok { // the kernel doesn't pass such blocks
		trap(call, jobhost.CategorySystem, "it was given a place outside of the memory")
	}
	return b
}

// hold keeps a result until the kernel has room for it, and puts its length
// onto the stack.
func (p *Plugin) hold(stack []uint64, answer []byte) {
	p.ready = answer
	stack[0] = api.EncodeI32(int32(len(answer)))
}

// take(to) writes the held result to a block that the kernel has allocated for it.
func take(ctx context.Context, m api.Module, stack []uint64) {
	p, _ := callOf(ctx)
	answer := p.ready
	p.ready = nil
	to := uint32(stack[0])
	room, ok := m.Memory().Read(to, uint32(len(answer)))
	if to == 0 || !ok {
		trap("alloc", jobhost.CategoryResource, "there is no room for an answer of %d bytes in the memory of at most %d", len(answer), p.arena.limit)
	}
	hostcall.Copy(room, answer)
}

// pause() does nothing, but lets a Caller end a stopped guest there.
func pause(ctx context.Context, _ api.Module, _ []uint64) { callOf(ctx) }

// Trap is what a call panics with to end the attempt, as Extism does. The
// engine turns it into a failure that shows the message.
type Trap struct {
	Call     string // without the module
	Category jobhost.Category
	Message  string // escaped; safe to show
}

// Error returns the message after the name of the call.
func (t *Trap) Error() string { return Module + "." + t.Call + ": " + t.Message }

func trap(call string, category jobhost.Category, format string, args ...any) {
	panic(&Trap{Call: call, Category: category, Message: fmt.Sprintf(format, args...)}) //nolint:forbidigo // how a host function traps: wazero recovers it
}
