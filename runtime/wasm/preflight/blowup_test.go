package preflight_test

import (
	"context"
	"os"
	"runtime"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// blowup is a small module that would keep the compiler busy for many seconds,
// or take more memory than there is. small is the same of a size that passes.
type blowup struct {
	name, because string
	make          func(n int) []byte
	size, small   int
}

func blowups() []blowup {
	return []blowup{
		{"nested blocks", "more than 20000 nested blocks", func(n int) []byte { return one(0, times(block, n), times(end, n)) }, 30_000, 2_000},
		{"blocks in a row", "basic blocks in a row", func(n int) []byte { return one(0, times(block+end, n)) }, 50_000, 3_000},
		{"ifs in a row", "basic blocks in a row", func(n int) []byte { return one(0, times(ifs+end, n)) }, 30_000, 500},
		{"branches to one label", "basic blocks in a row", func(n int) []byte { return one(0, block, times(brIf, n), end) }, 50_000, 500},
		{"returns", "basic blocks in a row", func(n int) []byte { return one(0, times(ifs+"\x0f"+end, n)) }, 30_000, 300},
		{"fills", "uses of locals and memory", func(n int) []byte { return one(0, times(get+get+get+"\xfc\x0b\x00", n)) }, 20_000, 500},
		{"copies", "basic blocks in a row", func(n int) []byte { return one(0, times(get+get+get+"\xfc\x0a\x00\x00", n)) }, 6_000, 500},
		{"calls of itself", "memory accesses before many branches", func(n int) []byte { return one(0, times(get+"\x10\x00"+wait, n)) }, 20_000, 500},
		{"locals and calls of itself", "locals that live across", func(n int) []byte {
			return one(n, eachLocal(n, get+"\x21", ""), times(get+"\x10\x00"+wait, 2*n), eachLocal(n, "\x20", drop))
		}, 2_000, 100},
		{"uses after branches", "uses of locals and memory", func(n int) []byte { return one(0, times(brIf, n), times(get+drop, 20*n)) }, 3_000, 200},
		{"loads before branches", "memory accesses before", func(n int) []byte { return one(0, get, times(load, n), times(brIf, n), drop) }, 8_000, 500},
		{"operands over branches", "operands on the stack", func(n int) []byte { return one(0, times(mix, n), times(block+brIf+end, n), times(global, n)) }, 4_000, 300},
		{"locals and loops", "values that differ", func(n int) []byte { return one(n, times(loop+brIf+end, n), eachLocal(n, "\x20", drop)) }, 2_000, 100},
		{"locals in nested loops", "locals in nested loops", func(n int) []byte {
			return one(n, times(loop, n), eachLocal(n, "\x20", "\x41\x01\x6a\x21\x01"), times(brIf+end, n))
		}, 900, 50},
		{"locals and ifs", "locals that live across many", func(n int) []byte {
			return one(n, eachLocal(n, ifs+get+"\x21", end), eachLocal(n, "\x20", drop))
		}, 2_000, 100},
		{"locals and branches out", "values that differ", func(n int) []byte {
			return one(n, block, eachLocal(n, "\x41\x07\x21", brIf), end, eachLocal(n, "\x20", drop))
		}, 1_500, 100},
		{"large br_table", "targets of one br_table", func(n int) []byte {
			return one(0, block+get+"\x0e"+number(n)+times("\x00", n)+"\x00"+end)
		}, 99_000, 5_000},
		// The types of each target are checked, also where no code is compiled.
		{"br_tables that are never reached", "values of branches that are never taken", func(n int) []byte {
			const targets = 1000
			table := "\x0e" + number(targets) + times("\x00\x01", targets/2) + "\x00"
			return one(0, "\x00"+times("\x02\x01", 2)+"\x00", times(table, n), end+end+"\x00")
		}, 1_000, 10},
		{"values on branches", "values that differ", func(n int) []byte {
			return one(0, "\x02\x01", times(get, 900), times(brIf, n), end, times(drop, 900))
		}, 10_000, 20},
		{"values in blocks", "parameters and results of blocks", func(n int) []byte {
			return one(0, times(get, 900), times("\x02\x02"+end, n), times(drop, 900))
		}, 10_000, 20},
		{"values in calls", "parameters and results of calls", func(n int) []byte {
			return one(0, times(get, 900), times(get+"\x11\x02\x00", n), times(drop, 900))
		}, 10_000, 20},
		{"globals and calls", "many mutable globals", func(n int) []byte {
			return build([]string{noTypes}, n, body(0, times("\x10\x00", n)))
		}, 5_000, 500},
		{"globals and functions", "functions times globals", func(n int) []byte {
			return build([]string{noTypes}, n, repeated(n, body(0, ""))...)
		}, 50_000, 1_000},
		{"types and functions", "functions times types", func(n int) []byte {
			return build(repeated(n, noTypes), 0, repeated(n, body(0, ""))...)
		}, 50_000, 1_000},
		{"wide types", "types with many parameters", func(n int) []byte {
			return build(append([]string{noTypes}, repeated(n, signature(1000, 1000))...), 0, body(0, ""))
		}, 2_000, 10},
		{"locals of many functions", "because of locals", func(n int) []byte {
			return build([]string{noTypes}, 0, repeated(n, body(9_999, ""))...)
		}, 50_000, 50},
		{"indirect calls", "instructions that become much code", func(n int) []byte {
			return one(0, times(get+get+"\x11\x00\x00", n))
		}, 100_000, 1_000},
	}
}

// TestBlowups refuses what the compiler would choke on.
func TestBlowups(t *testing.T) {
	t.Parallel()
	for _, c := range blowups() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			module := c.make(c.size)
			if err := check(module); err == nil || !strings.Contains(err.Error(), c.because) || jobhost.HintOf(err) == "" {
				t.Errorf("%d bytes: %v, hint %q", len(module), err, jobhost.HintOf(err))
			}
			harmless := c.make(c.small)
			if err := check(harmless); err != nil {
				t.Errorf("a harmless one: %v", err)
			}
			r := newRuntime(t.Context())
			defer func() { _ = r.Close(context.WithoutCancel(t.Context())) }()
			if compiled, panicked := compile(t.Context(), r, harmless); compiled == nil {
				t.Errorf("a harmless one doesn't compile: %v", panicked)
			}
		})
	}
}

// TestEdges compiles the largest of each kind that are let in. They take about
// as long as the estimate allows, and no more memory. It goes through the kinds
// that the rewrite makes, and with JOBHOST_CHAOS through all of them.
func TestEdges(t *testing.T) {
	all := os.Getenv("JOBHOST_CHAOS") != ""
	for _, c := range blowups() {
		if !all && !strings.Contains(c.name, "calls of itself") && c.name != "fills" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			n := sort.Search(c.size, func(n int) bool { return n > 0 && check(c.make(n)) != nil }) - 1
			edge := c.make(n)
			m, err := preflight.Check(edge, preflight.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := rewrite.Rewrite(m, rewrite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			run := newRuntime(t.Context())
			defer func() { _ = run.Close(context.WithoutCancel(t.Context())) }()
			start := time.Now()
			if compiled, panicked := compile(t.Context(), run, r.Module); compiled == nil {
				t.Fatalf("%d: doesn't compile: %v", n, panicked)
			}
			if took := time.Since(start); took > 10*time.Second { // on a busy machine
				t.Errorf("%d: took %v", n, took)
			}
			var mem runtime.MemStats
			if runtime.ReadMemStats(&mem); mem.Sys > 1<<30 {
				t.Errorf("%d: there are %d MiB in use", n, mem.Sys>>20)
			}
		})
	}
}

// check is what the host does with a module before the compiler sees it.
func check(b []byte) error {
	m, err := preflight.Check(b, preflight.Limits{Vectors: true})
	if err != nil {
		return err
	}
	r, err := rewrite.Rewrite(m, rewrite.Options{})
	if err != nil {
		return err
	}
	e, err := preflight.Rewritten(r.Module)
	if err != nil {
		return err
	}
	return e.Within(preflight.Limits{}, m.CodeBytes())
}

// compile is what stands behind preflight in the host: the compiler, with its
// panics caught. It reports whether the module compiles.
func compile(ctx context.Context, r wazero.Runtime, b []byte) (compiled wazero.CompiledModule, panicked any) {
	defer func() { panicked = recover() }()
	compiled, err := r.CompileModule(ctx, b)
	if err != nil {
		return nil, nil
	}
	return compiled, nil
}

func newRuntime(ctx context.Context) wazero.Runtime {
	return wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithMemoryLimitPages(1024).
		WithCloseOnContextDone(true).
		WithDebugInfoEnabled(false))
}
