package rewrite_test

import (
	"bytes"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

func openSort(t *testing.T, o rewrite.Options) *guest {
	t.Helper()
	g, err := open(compiler(), nil, rewritten(t, workload(t, "sort"), o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	return g
}

// TestFuelIsExact: the same job costs the same, however often the guest yields.
func TestFuelIsExact(t *testing.T) {
	t.Parallel()
	var want int64
	for _, interval := range []int{0, 0, 1, 1000, 1 << 24} {
		g := openSort(t, rewrite.Options{Interval: interval})
		for range 2 {
			g.allot(0)
			if result, err := g.ExportedFunction("run").Call(t.Context(), 1000); err != nil || result[0] != 1 {
				t.Fatalf("sorted: %v, %v", result, err)
			}
			if want == 0 {
				want = g.used()
			}
			if got := g.used(); got != want || got < 1000 {
				t.Errorf("with interval %d a run used %d, the first one %d", interval, got, want)
			}
		}
	}
}

// TestBudget: a guest is stopped at the first tick beyond its budget.
func TestBudget(t *testing.T) {
	t.Parallel()
	g := openSort(t, rewrite.Options{})
	g.allot(0)
	run := g.ExportedFunction("run")
	if _, err := run.Call(t.Context(), 50_000); err != nil {
		t.Fatal(err)
	}
	needed := g.used()
	const heaviest = 100 // of the guest's ticks
	for name, tc := range map[string]struct {
		budget int64
		enough bool
	}{
		"just enough": {budget: needed, enough: true},
		"more":        {budget: needed + 1, enough: true},
		"one less":    {budget: needed - 1},
		"half":        {budget: needed / 2},
		"one":         {budget: 1},
	} {
		g := openSort(t, rewrite.Options{})
		g.allot(tc.budget)
		_, err := g.ExportedFunction("run").Call(t.Context(), 50_000)
		if (err == nil) != tc.enough {
			t.Errorf("%s: %v", name, err)
		}
		if over := g.used() - tc.budget; !tc.enough && (over < 1 || over > heaviest) {
			t.Errorf("%s: it was stopped %d over its budget", name, over)
		}
		if stop := g.global(rewrite.Stop).Get(); stop != 0 {
			t.Errorf("%s: stop is %d", name, stop)
		}
	}
}

// TestStopStays: a guest that was stopped before it began stops as well.
func TestStopStays(t *testing.T) {
	t.Parallel()
	g := openSort(t, rewrite.Options{})
	g.global(rewrite.Stop).Set(api.EncodeI32(-1))
	if _, err := g.ExportedFunction("run").Call(t.Context(), 100_000); err == nil {
		t.Error("the guest was not stopped")
	}
}

// TestBulkCosts: the cost of operations on memory and tables follows from how
// much memory they touch; a table entry takes 8 bytes.
func TestBulkCosts(t *testing.T) {
	t.Parallel()
	const times = 100
	fill := []byte{0xfc, 0x0b, 0}
	fillTable := []byte{0xfc, 0x11, 0}
	null := []byte{byte(module.RefNull), module.FuncRef}
	cost := func(value, size, operation []byte, n uint64) int64 {
		row := bytes.Repeat(concat(i32(0), value, size, operation), times)
		a := &assembly{pages: 1, table: 10_000, empty: true, start: -1, functions: []routine{{kind: unary, code: append(row, argument...)}}}
		g, err := open(compiler(), nil, rewritten(t, a.bytes(), rewrite.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		defer g.close()
		g.allot(0)
		if _, err := g.ExportedFunction("f0").Call(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		return g.used()
	}
	none := cost(null, argument, fillTable, 0)
	for entries, more := range map[uint64]int64{512: 0, 513: 2 * times, 4096: 16 * times} {
		if got := cost(null, argument, fillTable, entries) - none; got != more {
			t.Errorf("filling %d entries of a table costs %d more than none, not %d", entries, got, more)
		}
	}
	few, many := cost(null, i32(64), fillTable, 0), cost(null, i32(512), fillTable, 0)
	fewBytes, manyBytes := cost(i32(7), i32(512), fill, 0), cost(i32(7), i32(4096), fill, 0)
	if many-few != manyBytes-fewBytes || many <= few {
		t.Errorf("512 entries cost %d, 64 cost %d; the same in bytes %d and %d", many, few, manyBytes, fewBytes)
	}
}
