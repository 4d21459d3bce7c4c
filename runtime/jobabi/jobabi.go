// Package jobabi translates the host calls of the native ABI, the import module
// jobhost1, between a guest's memory and [hostcall.Attempt]. It makes no
// decisions: see docs/abi.md for what each call means to a guest.
package jobabi

import (
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Module is the name that guests import from.
const Module = "jobhost1"

// Names and types of what a guest exports. Every entry has the type of Run.
const (
	Memory     = "memory"      // required
	Initialize = "_initialize" // () → (), optional
	Buffer     = "jh_buf"      // (min i32) → i32, optional
	Run        = "jh_run"      // (len i32) → i64
	Wake       = "jh_wake"     // () → (), optional
)

// Function is one host call.
type Function struct {
	Name string
	Args []Arg
	// Errno says that the result is an i32, 0 or an errno, and nothing else.
	Errno bool
	// Params and Results are the wasm types; Names name the params. Params and
	// Names follow from Args, and Results from Errno.
	Params, Results []api.ValueType
	Names           []string
	call            api.GoModuleFunc
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
	f64 = api.ValueTypeF64
)

// Functions returns all host calls, group by group.
func Functions() []Function {
	all := slices.Concat(jobCalls(), outCalls(), logCalls(), metricCalls(), timeCalls(), kvCalls(), stateCalls(), opCalls())
	for i := range all {
		for _, a := range all[i].Args {
			all[i].Params, all[i].Names = a.lower(all[i].Params, all[i].Names)
		}
		if all[i].Errno {
			all[i].Results = []api.ValueType{i32}
		}
	}
	return all
}

// Instantiate defines the module in a wazero runtime.
func Instantiate(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(Module)
	for _, f := range Functions() {
		b.NewFunctionBuilder().
			WithGoModuleFunction(f.call, f.Params, f.Results).
			WithParameterNames(f.Names...).
			Export(f.Name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return fmt.Errorf("define module %s: %w", Module, err)
	}
	return nil
}

// Caller is what the context of every call into a guest must implement: it
// carries the attempt to the host calls, which get it by a type assertion,
// without walking a chain of contexts.
type Caller interface {
	context.Context
	// Attempt returns the attempt that the guest works for.
	Attempt() *hostcall.Attempt
	// Life returns the context of the attempt. What lasts longer than a call is derived from it: the
	// Caller itself goes on to serve the next attempt.
	Life() context.Context
}

// attempt returns the attempt of a call. Anything but a Caller is a bug in the host.
func attempt(ctx context.Context) *hostcall.Attempt { return ctx.(Caller).Attempt() }

// life returns the context of the attempt.
func life(ctx context.Context) context.Context { return ctx.(Caller).Life() }

// errno puts the result of a call onto the stack.
func errno(stack []uint64, e hostcall.Errno) { stack[0] = api.EncodeI32(int32(e)) }
