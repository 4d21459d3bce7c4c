package preflight

import (
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/module"
)

// origin is a host that modules are made for, recognized by what they import.
type origin struct {
	// what it is, as in "is made for …", and what to do about it.
	what, hint string
	// modules are those that only this host has; a name that ends with * is a prefix.
	modules []string
	// functions are those of the module env, or of wasi_snapshot_preview1, that only this host has, in the same form.
	functions []string
	// params is the number of parameters of such a function, if that is distinctive; 0 = any number.
	params int
}

const (
	anyModule  = "env"
	wasiModule = "wasi_snapshot_preview1"
	forWASI    = "build it for wasm32-wasip1"
)

// origins are in the order in which they are tried: those that leave fewer traces in
// a module come first.
var origins = []origin{
	{
		what: "Extism before 1.0", hint: "build it again with a plugin kit of 1.0 or later",
		functions: []string{"extism_*"},
	},
	{
		what: "WASI as it was in 2019", hint: forWASI + " with a compiler of 2020 or later, which imports from " + wasiModule,
		modules: []string{"wasi_unstable"},
	},
	{
		what: "WASI threads", hint: forWASI + " rather than wasm32-wasip1-threads, without -pthread",
		modules: []string{"wasi"},
	},
	{what: "WASIX, an extension of WASI", hint: forWASI, modules: []string{"wasix_32v1", "wasix_64v1"}},
	{
		what: "WASI preview 2 or later", hint: forWASI + " rather than wasm32-wasip2",
		modules: []string{"wasi:*", "cm32p2*", "[export]*"},
	},
	{
		what: "WasmEdge, whose sockets are its own", hint: forWASI + " without the sockets of WasmEdge",
		modules: []string{"wasmedge_*"},
		functions: []string{
			"sock_open", "sock_bind", "sock_listen", "sock_connect", "sock_getaddrinfo", "sock_send_to", "sock_recv_from",
			"sock_getsockopt", "sock_setsockopt", "sock_getlocaladdr", "sock_getpeeraddr",
		},
	},
	{
		what: "JavaScript, by wasm-bindgen", hint: forWASI + ", without wasm-bindgen and the crates that need it (web-sys, js-sys)",
		modules: []string{"wbg", "__wbindgen_*", "./*_bg.js"},
	},
	{
		what: "JavaScript, by Go", hint: "build it with GOOS=wasip1 instead of GOOS=js",
		modules: []string{"gojs", "go"},
	},
	{
		what: "JavaScript, by emscripten", hint: "build it with wasi-sdk or zig cc, or with emcc -sSTANDALONE_WASM -sPURE_WASI",
		modules: []string{"a"}, // a minified name
		functions: []string{
			"emscripten_*", "_emscripten_*", "_embind_*", "_emval_*", "__syscall_*", "invoke_*", "_abort_js", "_mmap_js", "_munmap_js", "_tzset_js",
		},
	},
	{
		what: "a dynamic linker", hint: "link it as a module that stands alone, without -shared and -fPIC",
		functions: []string{"__memory_base", "__table_base", "__stack_pointer", "__indirect_function_table"},
	},
	{
		what: "JavaScript, by AssemblyScript", hint: "build it with the SDK of jobhost for AssemblyScript, or with --use abort= and without trace and seed",
		functions: []string{"abort"}, params: 4,
	},
	{
		what: "JavaScript, for Ruby", hint: "use the ruby.wasm that is built for wasm32-wasip1 alone",
		modules: []string{"rb-js-abi-host", "rb-abi-guest"},
	},
	{what: "JavaScript", hint: forWASI, modules: []string{"./*", "../*", "js", "js:*", "canonical_abi"}},
}

// Foreign rejects a module that is made for another host, if that can be
// recognized by those of its imports that are unavailable here.
func Foreign(m *module.Module, o Offer) error {
	missing := slices.DeleteFunc(slices.Clone(m.Imports), func(i module.Import) bool {
		_, here := o[i.Module][i.Name]
		return here
	})
	for n := range origins {
		for _, i := range missing {
			if origins[n].has(m, i) {
				return jobhost.Invalid("", origins[n].hint, "is made for %s: it imports %s", origins[n].what, shown(i.Module+"."+i.Name))
			}
		}
	}
	return nil
}

func (o *origin) has(m *module.Module, i module.Import) bool {
	if slices.ContainsFunc(o.modules, func(pattern string) bool { return matches(pattern, i.Module) }) {
		return true
	}
	if o.params > 0 && (i.Kind != module.KindFunction || len(m.Types[i.Type].Params) != o.params) {
		return false
	}
	return (i.Module == anyModule || i.Module == wasiModule) &&
		slices.ContainsFunc(o.functions, func(pattern string) bool { return matches(pattern, i.Name) })
}

// matches compares a name with a pattern, in which * stands for anything.
func matches(pattern, name string) bool {
	before, after, wild := strings.Cut(pattern, "*")
	if !wild {
		return name == pattern
	}
	return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}
