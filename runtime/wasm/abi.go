package wasm

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// abi is one of the ways to write a plugin: what it may import, what it must
// export, and how an attempt becomes calls. Each plugin has its own.
type abi interface {
	// define gives the plugin's runtime the modules that it may import.
	define(ctx context.Context, r wazero.Runtime) error
	// imports checks that the host offers what a module imports.
	imports(m *module.Module) error
	// contract checks the exports of the main module and completes the plugin's
	// info: its entries and the one that is called by default, which is entry if
	// that is not empty.
	contract(p *Plugin, m *module.Module, entry string) error
	// once returns the exports of a module that initialise it, in order.
	once(m *module.Module) []string
	// signature is the type of entries, for people.
	signature() string
	// guest returns the guest that makes the calls into an instance that is about to be created.
	guest(ctx context.Context, i *Instance) (guest, error)
}

// guest makes the calls into one instance.
type guest interface {
	// resolver returns ctx with a resolver for imports that differ between
	// instances.
	resolver(ctx context.Context) context.Context
	// link is called with each module of the instance, the main one last.
	link(name string, m api.Module)
	// attach is called when all modules are instantiated.
	attach()
	// initialise is called once, before the snapshot is taken and after the
	// exports that initialise the modules.
	initialise() error
	// remember returns the part of a snapshot besides memory and globals.
	remember() any
	// reset is called after memory and globals were reset to a snapshot, with
	// what it remembers. It reports whether the instance is worth keeping.
	reset(remembered any) (keep bool)
	// clean ends a job in an instance that is not reset. It reports whether the
	// instance can run another job.
	clean() bool
	// refused reports whether the guest was refused memory in this attempt,
	// apart from that of its modules.
	refused() bool
	// failed returns the outcome that the guest requested before it ended other
	// than by returning, if it did.
	failed(at *hostcall.Attempt) (jobhost.Outcome, bool)
	// call runs an entry, by its index in the plugin's info. An error says how
	// the guest ended other than by returning.
	call(entry int, at *hostcall.Attempt) (jobhost.Outcome, error)
	// close frees the guest's resources besides the modules.
	close(ctx context.Context) error
}

// alone implements the methods of guests that consist of only one module.
type alone struct{}

func (alone) resolver(ctx context.Context) context.Context { return ctx }
func (alone) link(string, api.Module)                      {}
func (alone) clean() bool                                  { return true }
func (alone) refused() bool                                { return false }
func (alone) close(context.Context) error                  { return nil }

func (alone) failed(at *hostcall.Attempt) (jobhost.Outcome, bool) { return at.Failed() }

// detect returns the ABI that a module was apparently written for, judging by
// its imports and exports.
func detect(m *module.Module) string {
	if extismabi.IsPlugin(m.Imports) {
		return runtime.ABIExtism
	}
	command := false
	for _, e := range m.Exports {
		switch {
		case e.Kind != module.KindFunction:
		case e.Name == "jh_run":
			return runtime.ABIJobhost
		case e.Name == startExport:
			command = true
		}
	}
	if command {
		return runtime.ABIWASI
	}
	return runtime.ABIJobhost
}

// abiNamed returns an ABI by its name; nil = there is none of that name.
func abiNamed(name string) (abi, wasiabi.Streams) {
	switch name {
	case runtime.ABIJobhost:
		return nativeABI{}, wasiabi.Log
	case runtime.ABIWASI:
		return commandABI{}, wasiabi.Command
	case runtime.ABIExtism:
		return &extismABI{}, wasiabi.Log
	}
	return nil, wasiabi.Log
}

// startExport is the export of a WASI command.
const startExport = "_start"
