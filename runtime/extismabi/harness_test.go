package extismabi_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/extismabi"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/module"
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

// probe is testdata/probe.c.
//
//go:embed testdata/probe.wasm
var probe []byte

// fixture returns a file of the SDK, and skips the test where it isn't there.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(sdk(), name))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("github.com/extism/go-sdk@v1.7.1 is not in the module cache: run `make fixtures`")
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// engine is a wazero runtime with all that plugins import.
type engine struct {
	runtime wazero.Runtime
	kernel  *extismabi.Kernel

	mu       sync.Mutex // protects compiled
	compiled map[string]wazero.CompiledModule
}

func newEngine(config wazero.RuntimeConfig) *engine {
	ctx := context.Background()
	e := &engine{runtime: wazero.NewRuntimeWithConfig(ctx, config), compiled: map[string]wazero.CompiledModule{}}
	wasi_snapshot_preview1.MustInstantiate(ctx, e.runtime)
	var err error
	if e.kernel, err = extismabi.Define(ctx, e.runtime); err != nil {
		panic(err)
	}
	return e
}

// compiler runs our own plugin, interpreter by default those of the SDK, which
// take seconds to compile.
var (
	compiler    = sync.OnceValue(func() *engine { return newEngine(wazero.NewRuntimeConfigCompiler()) })
	interpreter = sync.OnceValue(func() *engine { return newEngine(wazero.NewRuntimeConfigInterpreter()) })
)

// compile compiles a fixture once per engine.
func (e *engine) compile(t testing.TB, name string) wazero.CompiledModule {
	t.Helper()
	bytes := probe
	if name != "probe" {
		bytes = fixture(t, "wasm/"+name+".wasm")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if m, ok := e.compiled[name]; ok {
		return m
	}
	m, err := e.runtime.CompileModule(context.Background(), bytes)
	if err != nil {
		t.Fatal(err)
	}
	e.compiled[name] = m
	return m
}

// frame is the context of the calls into an instance.
type frame struct {
	context.Context
	at     *hostcall.Attempt
	plugin *extismabi.Plugin
}

func (f *frame) Attempt() *hostcall.Attempt { return f.at }
func (f *frame) Extism() *extismabi.Plugin  { return f.plugin }
func (f *frame) Life() context.Context      { return f.Context }

// instance is an instance of a plugin, used as an engine would.
type instance struct {
	plugin *extismabi.Plugin
	main   api.Module
	frame  *frame
	stack  [1]uint64
}

// setup says what to instantiate; the zero value will do.
type setup struct {
	engine  *engine
	options extismabi.Options
	config  wazero.ModuleConfig
	entry   string
}

// open instantiates a plugin of some modules, the main one last.
func open(t testing.TB, s setup, names ...string) *instance {
	t.Helper()
	if s.engine == nil {
		s.engine = interpreter()
		if names[0] == "probe" {
			s.engine = compiler()
		}
	}
	if s.config == nil {
		s.config = wazero.NewModuleConfig()
	}
	modules := make([]extismabi.Linked, len(names))
	for n, name := range names {
		modules[n] = extismabi.Linked{Name: name, Imports: importsOf(s.engine.compile(t, name))}
	}
	modules[len(modules)-1].Name = ""
	order, err := extismabi.Order(modules)
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{frame: &frame{Context: t.Context(), at: attempt("")}}
	if i.plugin, err = s.engine.kernel.NewPlugin(t.Context(), s.options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.plugin.Close(context.Background()) })
	i.frame.plugin = i.plugin
	ctx := *i.frame
	ctx.Context = experimental.WithImportResolver(t.Context(), i.plugin.Resolve)
	for _, n := range order {
		i.main, err = s.engine.runtime.InstantiateModule(&ctx, s.engine.compile(t, names[n]), s.config.WithName("").WithStartFunctions())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { i.main.Close(context.Background()) })
		i.plugin.Link(modules[n].Name, i.main)
		exports := typesOf(i.main.ExportedFunctionDefinitions())
		for _, name := range extismabi.Initializers(exports, s.entry) {
			zeros := make([]uint64, len(exports[name].Params))
			if _, err := i.main.ExportedFunction(name).Call(i.frame, zeros...); err != nil {
				t.Fatal(err)
			}
		}
	}
	i.plugin.Reset()
	return i
}

func typesOf(exports map[string]api.FunctionDefinition) map[string]module.FuncType {
	types := map[string]module.FuncType{}
	for name, f := range exports {
		types[name] = module.FuncType{Params: f.ParamTypes(), Results: f.ResultTypes()}
	}
	return types
}

func importsOf(m wazero.CompiledModule) []module.Import {
	var imports []module.Import
	for _, f := range m.ImportedFunctions() {
		from, name, _ := f.Import()
		imports = append(imports, module.Import{Module: from, Name: name})
	}
	return imports
}

func attempt(input string) *hostcall.Attempt {
	return &hostcall.Attempt{
		Input: []byte(input),
		Limits: hostcall.Limits{
			OutputBytes: 1 << 20, LogBytes: 64 << 10, LineBytes: 8 << 10,
			OpenRequests: 1, Requests: 100, RequestBytes: 1 << 40,
		},
	}
}

// run runs one attempt and makes the plugin as new. The error is that of a
// guest that trapped.
func (i *instance) run(entry string, at *hostcall.Attempt) (jobhost.Outcome, error) {
	defer i.plugin.Reset()
	return i.call(i.main.ExportedFunction(entry), at)
}

func (i *instance) call(f api.Function, at *hostcall.Attempt) (jobhost.Outcome, error) {
	i.frame.at = at
	if failure := i.plugin.Begin(at); failure != nil {
		return jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: failure}, nil
	}
	i.stack[0] = 0
	err := f.CallWithStack(i.frame, i.stack[:])
	rc := api.DecodeU32(i.stack[0])
	if exit, ok := errors.AsType[*sys.ExitError](err); ok && i.frame.Err() == nil {
		rc, err = exit.ExitCode(), nil
	}
	if err != nil {
		return jobhost.Outcome{}, err
	}
	return i.plugin.End(at, rc), nil
}

// must runs an attempt that succeeds and returns its result.
func (i *instance) must(t testing.TB, entry string, at *hostcall.Attempt) string {
	t.Helper()
	got, err := i.run(entry, at)
	if err != nil || got.Kind != jobhost.OutcomeSucceeded {
		t.Fatalf("%v %+v, %v", got.Kind, got.Failure, err)
	}
	return string(got.Output)
}

// trapOf runs an attempt that traps in a call of the host.
func (i *instance) trapOf(t testing.TB, entry string, at *hostcall.Attempt) *extismabi.Trap {
	t.Helper()
	got, err := i.run(entry, at)
	trap, ok := errors.AsType[*extismabi.Trap](err)
	if !ok {
		t.Fatalf("%v %+v, %v", got.Kind, got.Failure, err)
	}
	return trap
}

// services has a KV and answers all requests.
type services struct {
	hostcall.Services
	kv       map[string]string
	requests []string
	response hostcall.HTTPResponse
	err      error
}

func (s *services) Send(_ *hostcall.Attempt, r *hostcall.HTTPRequest) (hostcall.Exchange, error) {
	var header []string
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		header = append(header, name+": "+strings.Join(r.Header[name], ","))
	}
	s.requests = append(s.requests, fmt.Sprintf("%s %s %q %q ≤ %d", r.Method, r.URL, header, r.Body, r.MaxBytes))
	return s, nil
}

func (s *services) Defer(*hostcall.Attempt, *hostcall.HTTPRequest, string, []byte) (string, error) {
	return "", errors.ErrUnsupported
}

// Response implements [hostcall.Exchange].
func (s *services) Response(context.Context) (*hostcall.HTTPResponse, error) {
	response := s.response
	return &response, s.err
}

func (s *services) Drop() {}
