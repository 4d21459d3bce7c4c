package wasm

import (
	"context"

	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/jobabi"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// frame is the context of all calls into one instance. It carries what host
// calls work for, which they get by a type assertion. It is used by one
// goroutine at a time.
type frame struct {
	context.Context
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
func (f *frame) Attempt() *hostcall.Attempt { return f.at }

// WASI implements [wasiabi.Caller].
func (f *frame) WASI() *wasiabi.System { return f.wasi }

// Extism implements [extismabi.Caller].
func (f *frame) Extism() *extismabi.Plugin { return f.extism }
