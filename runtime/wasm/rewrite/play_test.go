package rewrite_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// tester is what tests and properties have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func compiler() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(2048)
}

func interpreter() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(2048)
}

// validate asks an engine whether a module is valid.
func validate(config wazero.RuntimeConfig, wasm []byte) error {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config)
	defer func() { _ = r.Close(ctx) }()
	_, err := r.CompileModule(ctx, wasm)
	return err
}

// valid asks the compiler whether a module is valid, which it finds out before it
// compiles. It looks at its context before each function when it has more than one
// worker, so here it ends where its work would begin, which takes long for large modules.
func valid(wasm []byte) error {
	ctx, cancel := context.WithCancel(experimental.WithCompilationWorkers(context.Background(), 2))
	cancel()
	r := wazero.NewRuntimeWithConfig(ctx, compiler())
	defer func() { _ = r.Close(ctx) }()
	if _, err := r.CompileModule(ctx, wasm); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func rewritten(t tester, wasm []byte, o rewrite.Options) *rewrite.Result {
	t.Helper()
	m, err := module.Read(wasm)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	r, err := rewrite.Rewrite(m, o)
	if err != nil {
		t.Fatalf("rewrite: %v", err)
	}
	return r
}

// guest is an instance of a module, rewritten or not.
type guest struct {
	api.Module
	result *rewrite.Result // nil = not rewritten
	close  func()
}

// open instantiates a module. What it imports beside WASI returns zeros.
func open(config wazero.RuntimeConfig, wasm []byte, result *rewrite.Result) (g *guest, err error) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config)
	g = &guest{result: result, close: func() { _ = r.Close(ctx) }}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if result != nil {
		wasm = result.Module
	}
	compiled, err := r.CompileModule(ctx, wasm)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	hosts := map[string]wazero.HostModuleBuilder{}
	for _, f := range compiled.ImportedFunctions() {
		from, name, _ := f.Import()
		if hosts[from] == nil {
			hosts[from] = r.NewHostModuleBuilder(from)
			if from == wasi_snapshot_preview1.ModuleName {
				wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(hosts[from])
			}
		}
		if from != wasi_snapshot_preview1.ModuleName {
			zeros := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) { clear(stack[:len(f.ResultTypes())]) })
			hosts[from].NewFunctionBuilder().WithGoModuleFunction(zeros, f.ParamTypes(), f.ResultTypes()).Export(name)
		}
	}
	for _, host := range hosts {
		if _, err := host.Instantiate(ctx); err != nil {
			return nil, err
		}
	}
	g.Module, err = r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("instantiate: %w", err)
	}
	if result == nil {
		return g, nil
	}
	for _, d := range result.Data {
		if !g.Memory().Write(d.Offset, d.Bytes) {
			return nil, fmt.Errorf("instantiate: data at %d don't fit", d.Offset)
		}
	}
	if result.Start != "" {
		if _, err := g.ExportedFunction(result.Start).Call(ctx); err != nil {
			return nil, fmt.Errorf("start: %w", err)
		}
	}
	return g, nil
}

func (g *guest) global(name string) api.MutableGlobal {
	return g.ExportedGlobal(name).(api.MutableGlobal)
}

// allot gives the guest fuel for a run.
func (g *guest) allot(budget int64) {
	tick, fuel, most := g.result.Allot(budget)
	g.global(rewrite.Tick).Set(api.EncodeI32(tick))
	g.global(rewrite.Fuel).Set(api.EncodeI64(fuel))
	g.global(rewrite.Budget).Set(api.EncodeI64(most))
}

// used returns the fuel since allot.
func (g *guest) used() int64 {
	return rewrite.Used(int64(g.global(rewrite.Fuel).Get()), api.DecodeI32(g.global(rewrite.Tick).Get()))
}

// state is everything observable about a guest.
func (g *guest) state() string {
	var b strings.Builder
	if m := g.Memory(); m != nil {
		all, _ := m.Read(0, m.Size())
		fmt.Fprintf(&b, "memory %d %x\n", len(all), sha256.Sum256(all))
	}
	for i := 0; ; i++ {
		global := g.ExportedGlobal(fmt.Sprintf("g%d", i))
		if global == nil {
			return b.String()
		}
		fmt.Fprintf(&b, "g%d %d\n", i, global.Get())
	}
}

// plays calls each exported function and records the results. A trap is
// recorded without the stack; a rewritten guest that uses more fuel than budget
// ends the recording.
func (g *guest) play(budget int64) (script string, enough bool) {
	var b strings.Builder
	var names []string
	for name := range g.ExportedFunctionDefinitions() {
		if !strings.HasPrefix(name, rewrite.Prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if i := slices.Index(names, "_initialize"); i > 0 {
		names = append([]string{"_initialize"}, slices.Delete(names, i, i+1)...)
	}
	for _, name := range names {
		f := g.ExportedFunction(name)
		args := make([]uint64, len(f.Definition().ParamTypes()))
		for i := range args {
			args[i] = uint64(7 + i)
		}
		if g.result != nil {
			g.allot(budget)
		}
		results, err := f.Call(context.Background(), args...)
		if err != nil && g.result != nil && g.used() > budget {
			return b.String(), false
		}
		what := ""
		if err != nil {
			what, _, _ = strings.Cut(err.Error(), "\nwasm stack trace")
		}
		fmt.Fprintf(&b, "%s: %d %s\n%s", name, results, what, g.state())
		if g.IsClosed() {
			break
		}
	}
	return b.String(), true
}

const noBudget = math.MaxInt64

// same plays a module and its rewritten form, and compares.
func same(t tester, config wazero.RuntimeConfig, wasm []byte, o rewrite.Options, budget int64) (unrestorable string) {
	t.Helper()
	r := rewritten(t, wasm, o)
	after, errAfter := open(config, wasm, r)
	if errAfter != nil {
		plain, err := open(config, wasm, nil)
		if err == nil {
			plain.close()
			t.Fatalf("the rewritten module can't be instantiated: %v", errAfter)
		}
		return r.Unrestorable
	}
	defer after.close()
	got, enough := after.play(budget)
	if !enough {
		return r.Unrestorable // it would never end
	}
	before, err := open(config, wasm, nil)
	if err != nil {
		t.Fatalf("open the original: %v", err)
	}
	defer before.close()
	want, _ := before.play(0)
	if got != want {
		t.Fatalf("the rewritten module does something else:\n%s\nthe original:\n%s", got, want)
	}
	return r.Unrestorable
}

var _ tester = (*testing.T)(nil)
