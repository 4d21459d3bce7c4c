package wasm

import (
	"context"

	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/jobabi"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// frame is the context of all calls into one instance. It carries what host
// calls work for, which they get by a type assertion. It is not safe for
// concurrent use.
//
// A stopped guest notices by its meter, after a fixed number of instructions.
// Host calls count as few instructions, however long they take, so none is
// begun for a stopped guest.
type frame struct {
	context.Context
	stop   *stopper
	at     *hostcall.Attempt
	wasi   *wasiabi.System
	extism *extismabi.Plugin // nil for other ABIs
}

var (
	_ jobabi.Caller    = (*frame)(nil)
	_ wasiabi.Caller   = (*frame)(nil)
	_ extismabi.Caller = (*frame)(nil)
)

// Attempt implements [jobabi.Caller].
func (f *frame) Attempt() *hostcall.Attempt {
	f.goOn()
	return f.at
}

// Life implements [jobabi.Caller] and [extismabi.Caller].
func (f *frame) Life() context.Context { return f.Context }

// WASI implements [wasiabi.Caller].
func (f *frame) WASI() *wasiabi.System {
	f.goOn()
	return f.wasi
}

// Extism implements [extismabi.Caller].
func (f *frame) Extism() *extismabi.Plugin { return f.extism }

// goOn ends the call into the guest if that was stopped.
func (f *frame) goOn() {
	if f.stop.halted.Load() {
		panic(errStopped) //nolint:forbidigo // how a host function leaves the guest: wazero recovers it
	}
}
