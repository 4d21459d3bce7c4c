// Package wasiabi is the host's side of WASI preview 1, the import module
// wasi_snapshot_preview1, for sandboxes that run one job after another.
//
// What a guest changes here lasts for one attempt: [System.End] restores the
// table of descriptors for the next attempt. Everything that waits ends when
// the guest is stopped, files are reached through [os.Root] so that no path
// leads out of a mount, and proc_exit ends a call but not the module.
//
// A pointer outside the memory returns EFAULT, as the interface has an errno
// for it that the libraries of guests know; the native ABI, which has none,
// traps.
//
// The functions and the layout of all structures are those of the preview 1
// snapshot: WebAssembly/WASI, legacy/preview1/docs.md.
package wasiabi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Module is the name that guests import from.
const Module = "wasi_snapshot_preview1"

// Caller is what the context of every call into a guest must implement, so that
// the functions find the guest's system by a type assertion. The guest must
// have a memory.
type Caller interface {
	context.Context
	WASI() *System
}

// Function is one function of the module.
type Function struct {
	Name string
	// Params and Results are the wasm types; Names are the names of the params.
	Params, Results []api.ValueType
	Names           []string
	call            api.GoModuleFunc
}

// body implements a function: arguments in, errno out.
type body func(s *System, m memory, a args) Errno

// Functions returns all functions, group by group.
func Functions() []Function {
	return slices.Concat(
		envFunctions(), clockFunctions(), fdFunctions(), fileFunctions(), statFunctions(), pathFunctions(),
		[]Function{
			define("fd_readdir", "fd buf buf_len cookie:i64 bufused", fdReaddir),
			define("path_open", "fd dirflags path path_len oflags base:i64 inheriting:i64 fdflags opened", pathOpen),
			define("poll_oneoff", "in out nsubscriptions nevents", pollOneoff),
			define("random_get", "buf buf_len", randomGet),
		},
		processFunctions(), sockFunctions(),
	)
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

// define makes a function that returns an errno. params are names; all are i32
// except those marked :i64.
func define(name, params string, do body) Function {
	f := Function{Name: name, Results: []api.ValueType{api.ValueTypeI32}}
	for _, p := range strings.Fields(params) {
		p, wide := strings.CutSuffix(p, ":i64")
		t := api.ValueTypeI32
		if wide {
			t = api.ValueTypeI64
		}
		f.Names = append(f.Names, p)
		f.Params = append(f.Params, t)
	}
	f.call = func(ctx context.Context, m api.Module, stack []uint64) {
		stack[0] = uint64(do(system(ctx), memoryOf(m), stack))
	}
	return f
}

// system returns the system of a call. Every call comes from a guest that was
// entered with a Caller, so anything else is a bug in the host.
func system(ctx context.Context) *System { return ctx.(Caller).WASI() }

// args are the arguments of a call, as on the stack.
type args []uint64

func (a args) u32(i int) uint32 { return uint32(a[i]) }
func (a args) u64(i int) uint64 { return a[i] }
