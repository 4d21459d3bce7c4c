package extismabi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime/module"
)

// userModule is where Extism hosts offer functions of their own by default.
const userModule = "extism:host/user"

// Function is a function that guests may import from [Module].
type Function struct {
	Name            string
	Params, Results []api.ValueType
}

// Functions returns everything that guests may import from [Module].
func Functions() []Function {
	f := func(name string, types ...api.ValueType) Function {
		// The last type is the result; 0 = none.
		n := len(types) - 1
		if types[n] == 0 {
			return Function{Name: name, Params: types[:n]}
		}
		return Function{Name: name, Params: types[:n], Results: types[n:]}
	}
	return []Function{
		f("alloc", i64, i64), f("free", i64, 0), f("length", i64, i64), f("length_unsafe", i64, i64),
		f("load_u8", i64, i32), f("load_u64", i64, i64), f("store_u8", i64, i32, 0), f("store_u64", i64, i64, 0),
		f("input_set", i64, i64, 0), f("input_offset", i64), f("input_length", i64),
		f("input_load_u8", i64, i32), f("input_load_u64", i64, i64),
		f("output_set", i64, i64, 0), f("output_offset", i64), f("output_length", i64),
		f("error_set", i64, 0), f("error_get", i64), f("reset", 0), f("memory_bytes", i64),
		f("config_get", i64, i64), f("var_get", i64, i64), f("var_set", i64, i64, 0),
		f("http_request", i64, i64, i64), f("http_status_code", i32), f("http_headers", i64),
		f("log_trace", i64, 0), f("log_debug", i64, 0), f("log_info", i64, 0), f("log_warn", i64, 0), f("log_error", i64, 0),
		f("get_log_level", i32),
	}
}

// Check finds imports of a module that nothing provides. linked are the names
// of the plugin's other modules. It must be called before a module is
// instantiated: a kernel also exports its memory, which is not for guests. The
// error lists all faults; each is a [*jobhost.Error] with a hint.
func Check(imports []module.Import, linked []string) error {
	var errs []error
	for _, i := range imports {
		if err := check(i, linked); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func check(i module.Import, linked []string) error {
	shown := text.Line(i.Module+"."+i.Name, 200)
	if i.Kind != api.ExternTypeFunc {
		return jobhost.Invalid("", "the modules of a plugin share functions only",
			"imports %s, a %s", shown, api.ExternTypeName(i.Kind))
	}
	switch {
	case i.Module == Module:
		if slices.ContainsFunc(Functions(), func(f Function) bool { return f.Name == i.Name }) {
			return nil
		}
		return jobhost.Invalid("", "this host offers what Extism's own SDK for Go offers, version 1.7", "imports %s, which this host doesn't offer", shown)
	case slices.Contains(linked, i.Module), i.Module == wasi_snapshot_preview1.ModuleName:
		return nil
	case strings.HasPrefix(i.Module, "wasi:"):
		return jobhost.Invalid("", "build for wasm32-wasip1, not wasip2", "imports %s, but this host has no module %s", shown, text.Line(i.Module, 100))
	}
	what := "a function of its own host"
	if i.Module != userModule {
		what = "which neither this host nor a linked module offers"
	}
	return jobhost.Invalid("", fmt.Sprintf("custom host functions are not supported: use config, vars and HTTP, or link a module named %s that exports %s",
		text.Line(i.Module, 100), text.Line(i.Name, 100)), "imports %s, %s", shown, what)
}

// IsPlugin reports whether a module with these imports is an Extism plugin. One
// that uses nothing of Extism can't be told from others.
func IsPlugin(imports []module.Import) bool {
	return slices.ContainsFunc(imports, func(i module.Import) bool { return i.Module == Module })
}
