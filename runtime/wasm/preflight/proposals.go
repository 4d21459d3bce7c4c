package preflight

import (
	"errors"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/module"
)

// proposals are features that compilers use but this host doesn't run, and what
// to do about each.
var proposals = map[module.Proposal]string{
	module.Threads:         "build it without -pthread or +atomics, for wasm32-wasip1 rather than wasm32-wasip1-threads, and if it is from emscripten without -sPTHREADS",
	module.Exceptions:      "build it without -fwasm-exceptions, and without setjmp or what else needs them; Rust with panic = \"abort\"",
	module.TailCalls:       "build it without -mtail-call, or +tail-call",
	module.GC:              "build it for plain wasm32, if its compiler can; a native program can be a worker, too: see docs/processes.md",
	module.ExtendedConst:   "build it without -mextended-const, or +extended-const",
	module.Memory64:        "build it for wasm32 rather than wasm64, and if it is from emscripten without -sMEMORY64",
	module.MultiMemory:     "link it as a module with one memory",
	module.RelaxedSIMD:     "build it without -mrelaxed-simd, or +relaxed-simd",
	module.StackSwitching:  "build it without",
	module.WideArithmetic:  "build it without -mwide-arithmetic, or +wide-arithmetic",
	module.CustomPageSizes: "build it with the usual pages of 64 KiB",
}

// malformed is the error of a module that is not well-formed, or that needs what
// this host doesn't run.
func malformed(err error) error {
	if e, ok := errors.AsType[*module.Error](err); ok && e.Proposal != "" {
		return jobhost.Invalid("", proposals[e.Proposal], "needs %s, which this host doesn't run: %v", e.Proposal, err)
	}
	return jobhost.Invalid("", "build it again, for WebAssembly 2.0; if it was copied, compare its checksum", "is not a valid WebAssembly module: %v", err)
}
