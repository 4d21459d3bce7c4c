package extismabi

import (
	"slices"
	"strings"

	"github.com/jobhost/jobhost/runtime/module"
)

// Names of exports that prepare a guest.
const (
	initReactor = "_initialize"       // WASI reactors: () → ()
	initCtors   = "__wasm_call_ctors" // C and C++ without a reactor's: () → ()
	initHaskell = "hs_init"           // Haskell's runtime: (argc, argv) → ()
	// argumentsOfJS is called by the shim of Extism's kit for JavaScript.
	argumentsOfJS = "__arg_start"
	// Start is the main function of a WASI command, which initialises the guest
	// itself, and usually ends it.
	Start = "_start"
)

// Initializers returns which exports of a module to call once per instance,
// before the first call of entry, in this order and with as many zeros as they
// have parameters. In a plugin of several modules, the linked ones are
// initialised first. A module whose entry is [Start] needs none.
func Initializers(exports map[string]module.FuncType, entry string) []string {
	if entry == Start {
		return nil
	}
	has := func(name string, params ...byte) bool {
		f, ok := exports[name]
		return ok && slices.Equal(f.Params, params) && len(f.Results) <= 1
	}
	var names []string
	if has(initReactor) {
		names = append(names, initReactor)
	}
	switch {
	case has(initHaskell, i32, i32):
		names = append(names, initHaskell)
	case len(names) == 0 && has(initCtors):
		names = append(names, initCtors)
	}
	return names
}

// Entries returns the exports that a job may name, sorted: those of type () →
// () or () → i32 that do not belong to the plugin's own runtime.
func Entries(exports map[string]module.FuncType) []string {
	var names []string
	for name, f := range exports {
		if len(f.Params) > 0 || len(f.Results) > 1 || len(f.Results) == 1 && f.Results[0] != i32 {
			continue
		}
		if !internal(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// internal reports whether an export was added by a compiler or a plugin kit.
func internal(name string) bool {
	switch name {
	case initReactor, initCtors, initHaskell, "hs_exit", argumentsOfJS, "__wasm_call_dtors", "__wasm_init_memory", "__wasm_apply_data_relocs":
		return true
	}
	return strings.HasPrefix(name, "asyncify_")
}

// DefaultEntry returns the entry to use when none is named: the only one,
// ignoring [Start] if there is another. "" = there are none, or several, so
// that the worker has to name it.
func DefaultEntry(entries []string) string {
	others := slices.DeleteFunc(slices.Clone(entries), func(name string) bool { return name == Start })
	switch {
	case len(others) == 1:
		return others[0]
	case len(others) == 0 && len(entries) == 1:
		return Start
	}
	return ""
}
