package wasm_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
)

// TestStrangers: a module that is made for something else is refused with what that is.
func TestStrangers(t *testing.T) {
	t.Parallel()
	// Types: 0 is (i32) → i64, 1 is () → (), 2 has four parameters.
	const fourTypes = "\x01\x03\x60\x01\x7f\x01\x7e\x60\x00\x00\x60\x04\x7f\x7f\x7f\x7f\x00"
	imports := func(from, name string) []byte { return module(fourTypes, imported(from, name, "\x00\x01"), memory1) }
	body := func(code string) []byte {
		return module(types, function, memory1, "\x07\x02"+exportMemory+exportRun, "\x0a\x01"+string(rune(len(code)+2))+"\x00"+code+"\x0b")
	}
	global := func(init string) []byte { return module("\x06\x01\x7f\x00" + init + "\x0b") }
	for _, c := range []struct {
		name          string
		module        []byte
		message, hint string
		abi           string
	}{
		{name: "Extism 0.x", module: imports("env", "extism_input_length"), message: "is made for Extism before 1.0: it imports env.extism_input_length", hint: "plugin kit of 1.0"},
		{name: "Extism 0.x as such", abi: "extism", module: imports("env", "extism_alloc"), message: "is made for Extism before 1.0"},
		{name: "WASI of 2019", module: imports("wasi_unstable", "fd_write"), message: "is made for WASI as it was in 2019", hint: "wasm32-wasip1"},
		{name: "WASI threads", module: imports("wasi", "thread-spawn"), message: "is made for WASI threads", hint: "without -pthread"},
		{name: "WASIX", module: imports("wasix_32v1", "proc_fork"), message: "is made for WASIX"},
		{name: "preview 2 as a core module", module: imports("wasi:io/streams@0.2.0", "[method]x"), message: "is made for WASI preview 2"},
		{name: "WasmEdge", module: imports("wasi_snapshot_preview1", "sock_open"), message: "is made for WasmEdge", hint: "without the sockets"},
		{name: "wasm-bindgen", module: imports("wbg", "__wbindgen_throw"), message: "is made for JavaScript, by wasm-bindgen", hint: "web-sys"},
		{name: "wasm-bindgen for bundlers", module: imports("./pkg_bg.js", "__wbg_log"), message: "by wasm-bindgen"},
		{name: "Go for JavaScript", module: imports("gojs", "runtime.wasmExit"), message: "is made for JavaScript, by Go", hint: "GOOS=wasip1"},
		{name: "emscripten", module: imports("env", "emscripten_resize_heap"), message: "is made for JavaScript, by emscripten", hint: "wasi-sdk"},
		{name: "emscripten made small", module: imports("a", "b"), message: "by emscripten"},
		{name: "AssemblyScript", module: module(fourTypes, imported("env", "abort", "\x00\x02"), memory1), message: "is made for JavaScript, by AssemblyScript", hint: "abort="},
		{name: "abort of C", module: imports("env", "abort"), message: "this host has no module env", hint: "never defined"},
		{name: "Ruby for JavaScript", module: imports("rb-js-abi-host", "eval-js"), message: "is made for JavaScript, for Ruby"},
		{name: "a script's module", module: imports("./host.js", "f"), message: "is made for JavaScript: it imports ./host.js.f"},
		{name: "a shared library", module: module(types, imported("env", "__memory_base", "\x03\x7f\x00"), memory1), message: "is made for a dynamic linker", hint: "-shared"},
		{name: "a reactor", module: module("\x01\x01\x60\x00\x01\x7f", function, memory1, "\x07\x02"+exportMemory+"\x04work\x00\x00", "\x0a\x01\x04\x00\x41\x00\x0b"), message: "is no plugin of any kind", hint: "it exports work;"},

		{name: "threads", module: module("\x05\x01\x03\x01\x02"), message: "needs threads", hint: "without -pthread"},
		{name: "threads of an import", module: module(types, imported("env", "memory", "\x02\x03\x01\x02")), message: "needs threads", hint: "without -pthread"},
		{name: "atomics", module: body("\xfe\x03\x00\x42\x00"), message: "needs threads", hint: "+atomics"},
		{name: "exceptions", module: body("\x1f\x40\x00\x0b\x42\x00"), message: "needs exception handling", hint: "setjmp"},
		{name: "exceptions as they were", module: body("\x06\x40\x0b\x42\x00"), message: "needs exception handling"},
		{name: "a tag", module: module(types, "\x0d\x01\x00\x01"), message: "needs exception handling"},
		{name: "an imported tag", module: module(types, imported("env", "__cpp_exception", "\x04\x00\x01")), message: "needs exception handling"},
		{name: "an exception as a value", module: module("\x01\x01\x60\x01\x69\x00"), message: "needs exception handling"},
		{name: "a sum", module: global("\x41\x01\x41\x02\x6a"), message: "needs extended constant expressions", hint: "-mextended-const"},
		{name: "64-bit memory", module: module("\x05\x01\x04\x01"), message: "needs 64-bit memory", hint: "wasm32 rather than wasm64"},
		{name: "two memories", module: module("\x05\x02\x00\x01\x00\x01"), message: "needs multiple memories", hint: "one memory"},
		{name: "access to a second memory", module: body("\x41\x00\x28\x42\x01\x00\x1a\x42\x00"), message: "needs multiple memories"},
		{name: "garbage collection", module: module("\x01\x01\x5f\x01\x7f\x00"), message: "needs garbage collection"},
		{name: "a reference to a function", module: body("\x41\x00\x14\x00"), message: "needs garbage collection"},
		{name: "tail calls", module: body("\x41\x00\x12\x00"), message: "needs tail calls", hint: "-mtail-call"},
		{name: "relaxed SIMD", module: body("\xfd\x80\x02\x42\x00"), message: "needs relaxed SIMD", hint: "-mrelaxed-simd"},
		{name: "a component", module: []byte("\x00asm\x0d\x00\x01\x00\x00"), message: "component", hint: "core module"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := newEngine(t).Load(t.Context(), runtime.Source{Worker: "w", Path: "test.wasm", Bytes: c.module, ABI: c.abi})
			if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), c.message) {
				t.Errorf("%v, not %q", err, c.message)
			}
			if hint := jobhost.HintOf(err); !strings.Contains(hint, c.hint) || hint == "" {
				t.Errorf("hint %q doesn't say %q", hint, c.hint)
			}
		})
	}
}

// TestImportsComeFirst: where a module is made for another host, that is said before
// what its code would need.
func TestImportsComeFirst(t *testing.T) {
	t.Parallel()
	b := module(types, imported("rb-js-abi-host", "eval-js", "\x00\x01"), function, memory1, "\x0a\x01\x06\x00\x41\x00\x12\x00\x0b")
	_, err := newEngine(t).Load(t.Context(), runtime.Source{Worker: "w", Bytes: b})
	if err == nil || !strings.Contains(err.Error(), "made for JavaScript, for Ruby") {
		t.Error(err)
	}
}
