package wasm_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// sdk is where Go keeps Extism's SDK for Go, with the plugins of its tests. It
// is no dependency of this module; `make fixtures` downloads it.
var sdk = sync.OnceValue(func() string {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return ""
	}
	return filepath.Join(strings.TrimSpace(string(cache)), "github.com", "extism", "go-sdk@v1.7.1")
})

// fixture returns a plugin of the SDK, and skips the test where it isn't there.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(sdk(), "wasm", name+".wasm"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("github.com/extism/go-sdk@v1.7.1 is not in the module cache: run `make fixtures`")
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// loadFixture loads a plugin of some modules, the main one last.
func loadFixture(t testing.TB, src runtime.Source, names string) runtime.Plugin {
	t.Helper()
	modules := strings.Fields(names)
	last := len(modules) - 1
	for _, name := range modules[:last] {
		src.Linked = append(src.Linked, runtime.Linked{Name: name, Bytes: fixture(t, name)})
	}
	src.Worker, src.ABI, src.Bytes = "fixture", runtime.ABIExtism, fixture(t, modules[last])
	if names == "hello_haskell" { // Haskell's compiler uses vectors
		src.Features = []string{runtime.FeatureSIMD}
	}
	p, err := newEngine(t).Load(t.Context(), src)
	if err != nil {
		t.Fatalf("load %s: %v", names, err)
	}
	return p
}

// fixtureCase is a job that the SDK's tests run, and what they expect of it.
type fixtureCase struct {
	name, plugin, entry, input, want string
	config                           map[string]string
	mount                            string // "ro", "rw" or none
	// wayward says that the guest draws seeds from the host, so that its jobs
	// don't all cost the same.
	wayward bool
}

func fixtureCases() []fixtureCase {
	vowels := func(n string) string { return `{"count":` + n + `,"total":` + n + `,"vowels":"aeiouAEIOU"}` }
	return []fixtureCase{
		{name: "alloc", plugin: "alloc", entry: "run_test"},
		{name: "config", plugin: "config", entry: "run_test", config: map[string]string{"thing": "hello"}, want: `{"config": "hello"}`},
		{name: "no config", plugin: "config", entry: "run_test", want: `{"config": "<unset by host>"}`},
		{name: "vowels", plugin: "count_vowels", entry: "count_vowels", input: "hello world", want: vowels("3")},
		{name: "no vowels", plugin: "count_vowels", entry: "count_vowels", input: "bbbbbbb", want: vowels("0")},
		{name: "no input", plugin: "count_vowels", entry: "count_vowels", want: vowels("0")},
		{name: "file", plugin: "fs", entry: "run_test", mount: "rw", want: "hello world!"},
		{name: "file read-only", plugin: "read_write", entry: "try_read", mount: "ro", config: map[string]string{"path": "/mnt/test.txt"}, want: "hello world!"},
		{name: "hello", plugin: "hello", entry: "run_test", want: "Hello, world!"},
		{name: "Haskell", plugin: "hello_haskell", entry: "testing", input: "John", config: map[string]string{"greeting": "Howdy"}, want: "Howdy, John"},
		{name: "input offset", plugin: "input_offset", entry: "input_offset_length", input: "hello world", want: "\x0b\x00\x00\x00\x00\x00\x00\x00"},
		{name: "linked", plugin: "lib main", entry: "run_test", input: "benjamin", want: "Hello, BENJAMIN"},
		{name: "log", plugin: "log", entry: "run_test"},
		{name: "no-op", plugin: "noop", entry: "run_test"},
		{name: "println", plugin: "println", entry: "run_test", input: "x"},
		{name: "replace", plugin: "replace", entry: "run_test", input: "this is a test of a test ", want: "this is a wasm of a wasm "},
		{name: "no sleep", plugin: "sleep", entry: "run_test", config: map[string]string{"duration": "0"}, want: "slept for 0 seconds"},
		{name: "command by Go", plugin: "std_command", entry: "_start", input: "ben", want: "hello ben", wayward: true},
		{name: "var", plugin: "var", entry: "run_test", want: "a: 0"},
	}
}

// mounts gives a guest a folder with the file of the SDK's tests.
func mounts(t *testing.T, how string) runtime.System {
	t.Helper()
	if how == "" {
		return runtime.System{}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "test.txt"), []byte("hello world!"), 0o600); err != nil {
		t.Fatal(err)
	}
	return runtime.System{Mounts: []runtime.Mount{{Host: dir, Guest: "/mnt", Write: how == "rw"}}}
}

// TestFixtures runs the plugins of the SDK's tests, in Rust, TinyGo, Go, C and
// Haskell, as those tests do: job after job in one sandbox and once in another,
// with the same result and for the same fuel.
func TestFixtures(t *testing.T) {
	t.Parallel()
	for _, c := range fixtureCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := loadFixture(t, runtime.Source{Entry: c.entry, System: mounts(t, c.mount)}, c.plugin)
			var costs []int64
			for range 2 {
				sandbox := runtime.NewSandbox(p, nil)
				for range 2 {
					at := runtimetest.Attempt("", c.input)
					at.Config = c.config
					got := sandbox.Run(t.Context(), at)
					if got.Kind != jobhost.OutcomeSucceeded || string(got.Output) != c.want {
						t.Errorf("output %q instead of %q, %+v", got.Output, c.want, got.Failure)
					}
					costs = append(costs, got.Fuel)
				}
				_ = sandbox.Close(context.Background())
			}
			for _, cost := range costs {
				// Code without branches and calls costs nothing.
				if cost < 0 || cost != costs[0] && !c.wayward {
					t.Fatalf("the same job cost %v", costs)
				}
			}
		})
	}
}

// TestFixtureFails: what the SDK's tests expect to go wrong.
func TestFixtureFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, plugin, entry, input, code, message string
		config                                    map[string]string
		mount                                     string
		options                                   func(*runtime.Source)
	}{
		{name: "error", plugin: "fail", entry: "run_test", code: jobhost.FailWorker, message: "Some error message"},
		{name: "exit -1", plugin: "exit", entry: "_start", config: map[string]string{"code": "-1"}, code: jobhost.FailWorker, message: "returned -1 "},
		{name: "exit 500", plugin: "exit", entry: "_start", config: map[string]string{"code": "500"}, code: jobhost.FailWorker, message: "returned 500 "},
		{name: "exit, no number", plugin: "exit", entry: "_start", config: map[string]string{"code": "abc"}, code: jobhost.FailWorker, message: "returned 1 "},
		{name: "exit, no config", plugin: "exit", entry: "_start", code: jobhost.FailWorker, message: "returned 2 "},
		{name: "write to a read-only folder", plugin: "read_write", entry: "try_write", input: "hello hello!", mount: "ro", config: map[string]string{"path": "/mnt/test.txt"}, code: jobhost.FailWorker, message: "Failed to write file"},
		{name: "no HTTP", plugin: "http", entry: "run_test", code: jobhost.FailTrap, message: "HTTP request to https://jsonplaceholder.typicode.com is not allowed"},
		{name: "no vars", plugin: "var", entry: "run_test", code: jobhost.FailTrap, message: "this worker has no vars", options: func(s *runtime.Source) { s.Extism.VarBytes = -1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			src := runtime.Source{Entry: c.entry, System: mounts(t, c.mount)}
			if c.options != nil {
				c.options(&src)
			}
			sandbox := runtime.NewSandbox(loadFixture(t, src, c.plugin), nil)
			defer func() { _ = sandbox.Close(context.Background()) }()
			for range 2 {
				at := runtimetest.Attempt("", c.input)
				at.Config = c.config
				got := sandbox.Run(t.Context(), at)
				if f := got.Failure; f == nil || f.Code != c.code || !strings.Contains(f.Message, c.message) {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}

// TestFixturesRefused: plugins that need functions of a host of their own.
func TestFixturesRefused(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for plugin, want := range map[string]string{
		"host":           "imports extism:host/user.mult, a function of its own host",
		"host_memory":    "imports host.to_upper, which neither this host nor a linked module offers",
		"host_multiple":  "imports extism:host/user.hostGreenMessage, a function of its own host; imports extism:host/user.hostPurpleMessage, a function of its own host",
		"main":           "imports lib.capitalize, which neither this host nor a linked module offers",
		"nested.c.instr": "imports dylibso_observe.instrument_enter, which neither this host nor a linked module offers",
	} {
		_, err := e.Load(t.Context(), runtime.Source{Worker: "fixture", ABI: runtime.ABIExtism, Bytes: fixture(t, plugin)})
		if err == nil || jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", plugin, err)
		}
	}
	_, err := e.Load(t.Context(), runtime.Source{
		Worker: "fixture", ABI: runtime.ABIExtism, Bytes: fixture(t, "main"),
		Linked: []runtime.Linked{{Name: "lib", Bytes: fixture(t, "host_memory")}},
	})
	if err == nil || !strings.Contains(err.Error(), "imports host.to_upper") {
		t.Errorf("a linked module: %v", err)
	}
}

// world is a host with keys and values, and with one answer to all requests.
type world struct {
	runtimetest.Network
	kv       map[string]string
	requests []string
}

func (w *world) KVGet(_ *hostcall.Attempt, key []byte) ([]byte, int64, hostcall.Errno) {
	value, ok := w.kv[string(key)]
	if !ok {
		return nil, 0, hostcall.ErrNotFound
	}
	return []byte(value), 1, hostcall.OK
}

func (*world) KVAdd(*hostcall.Attempt, []byte, int64) (int64, hostcall.Errno) {
	return 0, hostcall.ErrDenied
}

func (*world) KVCompareAndSet(*hostcall.Attempt, []byte, int64, []byte) hostcall.Errno {
	return hostcall.ErrDenied
}

// TestFixtureOutside: HTTP and vars reach the host's services, across jobs and
// instances.
func TestFixtureOutside(t *testing.T) {
	t.Parallel()
	w := &world{kv: map[string]string{"a": "\x0a\x00\x00\x00"}}
	w.Respond = w.respond
	run := func(p runtime.Plugin, input string) jobhost.Outcome {
		at := runtimetest.Attempt("", input)
		at.Services = w
		return runtimetest.Instance(t, p).Run(t.Context(), at).Outcome
	}
	double := loadFixture(t, runtime.Source{Entry: "run_test"}, "var")
	for _, want := range []string{"\x14\x00\x00\x00", "\x28\x00\x00\x00"} {
		if got := run(double, ""); got.Failure != nil || w.kv["a"] != want {
			t.Errorf("a = %q, %+v", w.kv["a"], got.Failure)
		}
	}
	const url = "https://jsonplaceholder.typicode.com/todos/1"
	if got := run(loadFixture(t, runtime.Source{Entry: "run_test"}, "http"), ""); string(got.Output) != `{"id": 1}` || len(w.requests) != 1 || w.requests[0] != url {
		t.Errorf("%q, %+v, sent %q", got.Output, got.Failure, w.requests)
	}
	if got := run(loadFixture(t, runtime.Source{Entry: "http_get"}, "http_headers"), `{"url": "https://extism.org"}`); string(got.Output) != `{"content-type":"text/html; charset=utf-8"}` {
		t.Errorf("%q, %+v", got.Output, got.Failure)
	}
}

func (w *world) KVSet(_ *hostcall.Attempt, key, value []byte, _ time.Duration) hostcall.Errno {
	w.kv[string(key)] = string(value)
	return hostcall.OK
}

func (w *world) KVDelete(_ *hostcall.Attempt, key []byte) hostcall.Errno {
	delete(w.kv, string(key))
	return hostcall.OK
}

func (w *world) respond(_ context.Context, r *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
	w.requests = append(w.requests, r.URL)
	return &hostcall.HTTPResponse{
		Status: 200, Body: []byte(`{"id": 1}`), Header: map[string][]string{"Content-Type": {"text/html; charset=utf-8"}},
	}, nil
}

// TestFixtureStops: a plugin that sleeps, as it does in the SDK's tests of
// timeouts and of cancelled calls.
func TestFixtureStops(t *testing.T) {
	t.Parallel()
	p := loadFixture(t, runtime.Source{Entry: "run_test", System: runtime.System{PreciseClock: true}}, "sleep")
	late := runtimetest.Lateness(t, p, func() *hostcall.Attempt {
		at := runtimetest.Attempt("", "")
		at.Config = map[string]string{"duration": "3"}
		return at
	})
	if late > runtimetest.MaxLateness {
		t.Errorf("stopped %v late", late)
	}
}
