package extismabi_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/extism"
	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// TestPlugins runs the plugins of the SDK's tests; what they do here is what
// those tests expect.
func TestPlugins(t *testing.T) {
	t.Parallel()
	mounted := func(t *testing.T, mount func(wazero.FSConfig, string, string) wazero.FSConfig) wazero.ModuleConfig {
		return wazero.NewModuleConfig().WithFSConfig(mount(wazero.NewFSConfig(), textFolder(t), "/mnt"))
	}
	for _, tt := range []struct {
		name, plugin, entry, input, want string
		config                           map[string]string
		module                           func(*testing.T) wazero.ModuleConfig
		engine                           func() *engine
	}{
		{name: "alloc", plugin: "alloc", entry: "run_test", engine: compiler}, // it stores millions of bytes
		{name: "config", plugin: "config", entry: "run_test", config: map[string]string{"thing": "hello"}, want: `{"config": "hello"}`},
		{name: "no config", plugin: "config", entry: "run_test", want: `{"config": "<unset by host>"}`},
		{name: "vowels", plugin: "count_vowels", entry: "count_vowels", input: "hello world", want: `{"count":3,"total":3,"vowels":"aeiouAEIOU"}`},
		{name: "compiled", plugin: "count_vowels", entry: "count_vowels", input: "hello world", want: `{"count":3,"total":3,"vowels":"aeiouAEIOU"}`, engine: compiler},
		{name: "only vowels", plugin: "count_vowels", entry: "count_vowels", input: "aaaaaa", want: `{"count":6,"total":6,"vowels":"aeiouAEIOU"}`},
		{name: "no vowels", plugin: "count_vowels", entry: "count_vowels", input: "bbbbbbb", want: `{"count":0,"total":0,"vowels":"aeiouAEIOU"}`},
		{name: "no input", plugin: "count_vowels", entry: "count_vowels", want: `{"count":0,"total":0,"vowels":"aeiouAEIOU"}`},
		{name: "vowels by Go", plugin: "count_vowels_std", entry: "_start", input: "hello world", want: `{"count": 3, "config": "<unset by host>", "a": "this is var a"}`},
		{name: "file", plugin: "fs", entry: "run_test", want: "hello world!", module: func(t *testing.T) wazero.ModuleConfig {
			return mounted(t, wazero.FSConfig.WithDirMount)
		}},
		{name: "file by Go", plugin: "fs_std", entry: "run_test", want: "hello world!", module: func(t *testing.T) wazero.ModuleConfig {
			return mounted(t, wazero.FSConfig.WithDirMount)
		}},
		{name: "file read-only", plugin: "read_write", entry: "try_read", config: map[string]string{"path": "/mnt/test.txt"}, want: "hello world!", module: func(t *testing.T) wazero.ModuleConfig {
			return mounted(t, wazero.FSConfig.WithReadOnlyDirMount)
		}},
		{name: "hello", plugin: "hello", entry: "run_test", want: "Hello, world!"},
		{name: "Haskell", plugin: "hello_haskell", entry: "testing", input: "John", config: map[string]string{"greeting": "Howdy"}, want: "Howdy, John"},
		{name: "input offset", plugin: "input_offset", entry: "input_offset_length", input: "hello world", want: "\x0b\x00\x00\x00\x00\x00\x00\x00"},
		{name: "linked", plugin: "lib main", entry: "run_test", input: "benjamin", want: "Hello, BENJAMIN", engine: compiler},
		{name: "no-op", plugin: "noop", entry: "run_test"},
		{name: "println", plugin: "println", entry: "run_test", input: "x"},
		{name: "replace", plugin: "replace", entry: "run_test", input: "this is a test of a test ", want: "this is a wasm of a wasm "},
		{name: "no sleep", plugin: "sleep", entry: "run_test", config: map[string]string{"duration": "0"}, want: "slept for 0 seconds"},
		{name: "command", plugin: "std_command", entry: "_start", input: "ben", want: "hello ben"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := setup{entry: tt.entry}
			if tt.engine != nil {
				s.engine = tt.engine()
			}
			if tt.module != nil {
				s.config = tt.module(t)
			}
			i := open(t, s, strings.Fields(tt.plugin)...)
			// A command is over when it ends; others run job after job.
			for range map[bool]int{true: 1, false: 3}[tt.entry == extismabi.Start] {
				at := attempt(tt.input)
				at.Config = tt.config
				if got := i.must(t, tt.entry, at); got != tt.want {
					t.Errorf("output %q, want %q", got, tt.want)
				}
			}
		})
	}
}

func TestPluginFails(t *testing.T) {
	t.Parallel()
	got, err := open(t, setup{}, "fail").run("run_test", attempt(""))
	if err != nil || got.Failure == nil || got.Failure.Message != "Some error message" || got.Failure.Code != jobhost.FailWorker || !got.Failure.Retryable {
		t.Errorf("%+v, %v", got, err)
	}
	dir := wazero.NewFSConfig().WithReadOnlyDirMount(textFolder(t), "/mnt")
	at := attempt("hello hello!")
	at.Config = map[string]string{"path": "/mnt/test.txt"}
	got, err = open(t, setup{config: wazero.NewModuleConfig().WithFSConfig(dir)}, "read_write").run("try_write", at)
	if err != nil || got.Failure == nil || !strings.Contains(got.Failure.Message, "Failed to write file") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestPluginExits(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{"-1": "returned -1 ", "500": "returned 500 ", "abc": "returned 1 ", "": "returned 2 "} {
		at := attempt("")
		if config != "" {
			at.Config = map[string]string{"code": config}
		}
		got, err := open(t, setup{entry: extismabi.Start}, "exit").run(extismabi.Start, at)
		if err != nil || got.Failure == nil || !strings.Contains(got.Failure.Message, want) {
			t.Errorf("%q: %+v, %v", config, got, err)
		}
	}
}

// TestPluginIsStopped: nothing of a kernel is in the way of a deadline.
func TestPluginIsStopped(t *testing.T) {
	t.Parallel()
	e := newEngine(wazero.NewRuntimeConfigInterpreter().WithCloseOnContextDone(true))
	t.Cleanup(func() { e.runtime.Close(t.Context()) })
	i := open(t, setup{engine: e, config: wazero.NewModuleConfig().WithSysWalltime().WithSysNanotime()}, "sleep")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	i.frame.Context = ctx
	at := attempt("")
	at.Config = map[string]string{"duration": "30"}
	_, err := i.run("run_test", at)
	if exit, ok := errors.AsType[*sys.ExitError](err); !ok || exit.ExitCode() != sys.ExitCodeDeadlineExceeded {
		t.Errorf("%v", err)
	}
}

func TestPluginVars(t *testing.T) {
	t.Parallel()
	s := &services{kv: map[string]string{"a": "\x0a\x00\x00\x00"}}
	i := open(t, setup{}, "var")
	for _, want := range []string{"\x14\x00\x00\x00", "\x28\x00\x00\x00"} {
		at := attempt("")
		at.Services = s
		i.must(t, "run_test", at)
		if s.kv["a"] != want {
			t.Errorf("a = %q", s.kv["a"])
		}
	}
	at := attempt("")
	at.Services = s
	if trap := open(t, setup{options: extismabi.Options{Limits: extism.Limits{VarBytes: -1}}}, "var").trapOf(t, "run_test", at); trap.Call != "var_set" {
		t.Errorf("%v", trap)
	}
	// Where instances are not reset, their vars are their own.
	i = open(t, setup{options: extismabi.Options{KeepVars: true}}, "count_vowels")
	for _, want := range []string{`{"count":3,"total":3,"vowels":"aeiouAEIOU"}`, `{"count":3,"total":6,"vowels":"aeiouAEIOU"}`} {
		if got := i.must(t, "count_vowels", attempt("aaa")); got != want {
			t.Errorf("%s", got)
		}
	}
}

func TestPluginLogs(t *testing.T) {
	t.Parallel()
	i := open(t, setup{}, "log")
	for level, want := range map[int]string{
		-8: "debug this is a trace log\ndebug this is a debug log\ninfo this is an info log\nwarn this is a warning log\nerror this is an error log\n",
		4:  "warn this is a warning log\nerror this is an error log\n",
	} {
		at := attempt("")
		at.Limits.LogLevel = slog.Level(level)
		i.must(t, "run_test", at)
		if got, _ := at.TakeLog(); string(got) != want {
			t.Errorf("level %d: %q", level, got)
		}
	}
}

func TestPluginHTTP(t *testing.T) {
	t.Parallel()
	const url = "https://jsonplaceholder.typicode.com/todos/1"
	i := open(t, setup{}, "http")
	if trap := i.trapOf(t, "run_test", attempt("")); !strings.Contains(trap.Message, "HTTP request to https://jsonplaceholder.typicode.com is not allowed") {
		t.Errorf("%v", trap)
	}
	s := &services{response: hostcall.HTTPResponse{Status: 200, Body: []byte(`{"id": 1}`)}}
	at := attempt("")
	at.Services = s
	if got := i.must(t, "run_test", at); got != `{"id": 1}` || len(s.requests) != 1 || !strings.HasPrefix(s.requests[0], "GET "+url) {
		t.Errorf("%q, sent %q", got, s.requests)
	}
	for pattern, allowed := range map[string]bool{"jsonplaceholder.*.com": true, "google.*": false} {
		hosts, err := extism.NewHosts([]string{pattern})
		if err != nil {
			t.Fatal(err)
		}
		i := open(t, setup{options: extismabi.Options{Limits: extism.Limits{Hosts: hosts}}}, "http")
		at := attempt("")
		at.Services = s
		if _, err := i.run("run_test", at); (err == nil) != allowed {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	s.response.Header = map[string][]string{"Content-Type": {"text/html; charset=utf-8"}}
	at = attempt(`{"url": "https://extism.org"}`)
	at.Services = s
	if got := open(t, setup{}, "http_headers").must(t, "http_get", at); got != `{"content-type":"text/html; charset=utf-8"}` {
		t.Errorf("%q", got)
	}
}

// TestRefused: plugins that need functions of their own host.
func TestRefused(t *testing.T) {
	t.Parallel()
	for plugin, want := range map[string]string{
		"host":           "imports extism:host/user.mult, a function of its own host",
		"host_memory":    "imports host.to_upper, which neither this host nor a linked module offers",
		"host_multiple":  "imports extism:host/user.hostGreenMessage, a function of its own host\nimports extism:host/user.hostPurpleMessage, a function of its own host",
		"nested.c.instr": "imports dylibso_observe.instrument_enter, which neither this host nor a linked module offers\nimports dylibso_observe.instrument_exit, which neither this host nor a linked module offers\nimports dylibso_observe.instrument_memory_grow, which neither this host nor a linked module offers",
		"main":           "imports lib.capitalize, which neither this host nor a linked module offers",
	} {
		err := extismabi.Check(importsOf(interpreter().compile(t, plugin)), nil)
		if err == nil || err.Error() != want || jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(jobhost.HintOf(err), "link a module named") {
			t.Errorf("%s: %v", plugin, err)
		}
	}
	for _, plugin := range []string{"alloc", "count_vowels", "http_headers", "hello_haskell", "var", "main", "noop"} {
		imports := importsOf(interpreter().compile(t, plugin))
		if err := extismabi.Check(imports, []string{"lib"}); err != nil {
			t.Errorf("%s: %v", plugin, err)
		}
		// The no-op imports only WASI.
		if got, want := extismabi.IsPlugin(imports), plugin != "noop"; got != want {
			t.Errorf("%s: a plugin: %t", plugin, got)
		}
	}
}

// TestFixtureEntries: what would be called, and what prepares it.
func TestFixtureEntries(t *testing.T) {
	t.Parallel()
	for plugin, want := range map[string]struct{ entries, entry, initializers string }{
		"count_vowels":  {"count_vowels", "count_vowels", ""},
		"noop":          {"_start run_test", "run_test", ""},
		"exit":          {"_start", "_start", ""},
		"fs":            {"_start run_test", "run_test", "_initialize"},
		"read_write":    {"try_read try_write", "", ""},
		"host_multiple": {"_start say_green say_purple", "", ""},
		"hello_haskell": {"testing", "testing", "_initialize hs_init"},
	} {
		exports := typesOf(interpreter().compile(t, plugin).ExportedFunctions())
		entries := extismabi.Entries(exports)
		entry := extismabi.DefaultEntry(entries)
		if got := strings.Join(entries, " "); got != want.entries || entry != want.entry {
			t.Errorf("%s: entries %s, %q by default", plugin, got, entry)
		}
		if got := strings.Join(extismabi.Initializers(exports, entry), " "); got != want.initializers {
			t.Errorf("%s: initializers %s", plugin, got)
		}
		if got := extismabi.Initializers(exports, extismabi.Start); got != nil {
			t.Errorf("%s: a command is prepared by %v", plugin, got)
		}
	}
}

// textFolder is a folder with the file that plugins read and write: a copy, since
// root may write to the module cache too.
func textFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "test.txt"), []byte("hello world!"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
