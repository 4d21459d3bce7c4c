package rewrite_test

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// Instructions that attacks are made of.
var (
	end      = []byte{byte(module.End)}
	drop     = []byte{0x1a}
	argument = []byte{byte(module.LocalGet), 0}
	lessOne  = concat(argument, i32(1), []byte{0x6b})
	// division is (x / 3), which takes long for its seven bytes.
	division = concat(argument, i32(3), []byte{0x6d, byte(module.LocalSet), 0})
)

func call(f int) []byte { return concat([]byte{byte(module.Call)}, uleb(f)) }

// unlessZero runs code while the first argument is not 0.
func unlessZero(code ...[]byte) []byte {
	return concat(argument, []byte{byte(module.If), 0x40}, concat(code...), end)
}

// attacks are modules whose function f0 takes (nearly) forever, and would keep
// the host from collecting garbage all that time.
func attacks() map[string]*assembly {
	const pages = 1024 // 64 MiB
	bulk := func(a *assembly, operation ...[]byte) *assembly {
		row := bytes.Repeat(concat(operation...), 100)
		a.functions = []routine{{kind: action, code: concat([]byte{byte(module.Loop), 0x40}, row, []byte{byte(module.Br), 0}, end)}}
		a.start = -1
		return a
	}
	plain := func(functions ...routine) *assembly {
		return &assembly{functions: functions, pages: 1, table: 50, start: -1}
	}
	half := int32(pages / 2 << 16)
	var tree []routine
	for i := range 45 {
		tree = append(tree, routine{kind: action, code: concat(call(i+1), call(i+1))})
	}
	tree = append(tree, routine{kind: action})
	other := func(f int) []byte { return unlessZero(lessOne, call(f), drop, lessOne, call(f), drop) }
	indirect := concat(lessOne, i32(1), []byte{byte(module.CallIndirect), unary, 0}, drop)
	return map[string]*assembly{
		"a loop": plain(routine{kind: action, code: concat([]byte{byte(module.Loop), 0x40, byte(module.Br), 0}, end)}),
		"no memory": {pages: -1, start: -1, functions: []routine{
			{kind: action, code: concat([]byte{byte(module.Loop), 0x40, byte(module.Br), 0}, end)},
		}},
		"a branch table": plain(routine{kind: action, locals: 1, code: concat([]byte{byte(module.Loop), 0x40, byte(module.Block), 0x40},
			argument, []byte{byte(module.BrTable), 1, 1, 1}, end, end)}),
		"a loop of divisions": plain(routine{kind: action, locals: 1, code: concat([]byte{byte(module.Loop), 0x40},
			bytes.Repeat(division, 20_000), []byte{byte(module.Br), 0}, end)}),
		"a tree of calls": plain(tree...),
		"a tree of two": plain(
			routine{kind: action, code: concat(i32(60), call(1), drop)},
			routine{kind: unary, code: concat(other(2), argument)}, routine{kind: unary, code: concat(other(1), argument)}),
		"a tree of calls by reference": plain(
			routine{kind: action, code: concat(i32(60), call(1), drop)},
			routine{kind: unary, code: concat(unlessZero(indirect, indirect), argument)}),
		// Each way down is counted; the way up runs 100,000 times 3,000 divisions.
		"a long way back": plain(
			routine{kind: action, code: concat([]byte{byte(module.Loop), 0x40}, i32(100_000), call(1), drop, []byte{byte(module.Br), 0}, end)},
			routine{kind: unary, code: concat(unlessZero(lessOne, call(1), drop, bytes.Repeat(division, 3000)), argument)}),
		"fills":               bulk(&assembly{pages: pages}, i32(0), i32(7), i32(pages<<16), []byte{0xfc, 0x0b, 0}),
		"copies":              bulk(&assembly{pages: pages}, i32(0), i32(half-5), i32(half), []byte{0xfc, 0x0a, 0, 0}),
		"copies to the left":  bulk(&assembly{pages: pages}, i32(0), i32(1), i32(pages<<16-1), []byte{0xfc, 0x0a, 0, 0}),
		"copies to the right": bulk(&assembly{pages: pages}, i32(1), i32(0), i32(pages<<16-1), []byte{0xfc, 0x0a, 0, 0}),
		"fills of a table": bulk(&assembly{pages: 1, table: 100_000}, i32(0),
			[]byte{byte(module.RefNull), module.FuncRef}, i32(100_000), []byte{0xfc, 0x11, 0}),
		"copies of a segment": bulk(&assembly{pages: 16, data: [][]byte{make([]byte, 1<<20)}, offsets: []int{-1}},
			i32(0), i32(0), i32(1<<20), []byte{0xfc, 0x08, 0, 0}),
	}
}

// delays are how long the host had to wait while an attack ran.
type delays struct{ tick, collection, stop time.Duration }

// endure runs an attack for some time, stops it, and reports the longest delays.
func endure(t testing.TB, a *assembly, ticks int) delays {
	t.Helper()
	g, err := open(compiler(), nil, rewritten(t, a.bytes(), rewrite.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	ended := make(chan error, 1)
	go func() {
		_, err := g.ExportedFunction("f0").Call(context.Background())
		ended <- err
	}()
	var worst delays
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	last := time.Now()
	for i := range ticks {
		<-ticker.C
		now := time.Now()
		worst.tick = max(worst.tick, now.Sub(last)-time.Millisecond)
		if i%8 == 0 {
			runtime.GC()
			worst.collection = max(worst.collection, time.Since(now))
		}
		last = time.Now()
	}
	asked := time.Now()
	g.global(rewrite.Stop).Set(1)
	err = <-ended
	worst.stop = time.Since(asked)
	if err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Fatalf("the guest was not stopped but returned: %v", err)
	}
	return worst
}

// TestAttacksEnd runs one attack at a time: several would compete for the processors, and each
// collection waits for all of them. Without the rewrite each of these hangs, so the bound need
// only be finite: a loaded machine with the race detector meets it. BenchmarkAttacks measures.
func TestAttacksEnd(t *testing.T) {
	t.Parallel()
	const patience = 20 * time.Second
	for name, a := range attacks() {
		t.Run(name, func(t *testing.T) {
			worst := endure(t, a, 9)
			if worst.tick > patience || worst.collection > patience || worst.stop > patience {
				t.Errorf("the host waited too long: %+v", worst)
			}
		})
	}
}

// BenchmarkAttacks reports the maximum delay of a ticker of the host, of a
// garbage collection, and of a guest after it was stopped.
func BenchmarkAttacks(b *testing.B) {
	for name, a := range attacks() {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			var worst delays
			for b.Loop() {
				d := endure(b, a, 100)
				worst.tick, worst.collection = max(worst.tick, d.tick), max(worst.collection, d.collection)
				worst.stop = max(worst.stop, d.stop)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(worst.tick.Microseconds())/1000, "late-ms")
			b.ReportMetric(float64(worst.collection.Microseconds())/1000, "GC-ms")
			b.ReportMetric(float64(worst.stop.Microseconds())/1000, "stop-ms")
		})
	}
}

// TestStackOverflow checks that endless recursion still traps as before.
func TestStackOverflow(t *testing.T) {
	t.Parallel()
	a := &assembly{pages: 1, start: -1, functions: []routine{{kind: action, code: call(0)}}}
	for name, config := range map[string]wazero.RuntimeConfig{"compiler": compiler(), "interpreter": interpreter()} {
		t.Run(name, func(t *testing.T) {
			g, err := open(config, nil, rewritten(t, a.bytes(), rewrite.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			defer g.close()
			if _, err := g.ExportedFunction("f0").Call(t.Context()); err == nil || !strings.Contains(err.Error(), "stack overflow") {
				t.Errorf("the guest returned %v", err)
			}
		})
	}
}
