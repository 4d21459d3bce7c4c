package rewrite_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/internal/testing/goguest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// corpus are the modules that are there: of this repository, and of the Extism
// Go SDK if it was downloaded. The examples in Go are nearly the same code, that of
// Go's runtime, so they are sampled; JOBHOST_CHAOS=1 (make chaos) takes all.
func corpus(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{
		"noop": guests.Noop, "echo": guests.Echo, "outcomes": guests.Outcomes, "exit": guests.Exit,
		"init": guests.Init, "init_spin": guests.InitSpin, "init_trap": guests.InitTrap,
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	fixtures := filepath.Join(strings.TrimSpace(string(cache)), "github.com/extism/go-sdk@v1.7.1/wasm")
	for _, pattern := range []string{"testdata/*.wasm", fixtures + "/*.wasm"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(paths) == 0 {
			t.Logf("no module matches %s", filepath.Base(filepath.Dir(pattern)))
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(path)] = b
		}
	}
	examples, err := goguest.Examples()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range examples {
		if len(b) < large || slices.Contains(sample, name) || os.Getenv("JOBHOST_CHAOS") != "" {
			all[name] = b
		}
	}
	return all
}

// Sizes from which modules take the compiler, and the interpreter, long.
const (
	medium = 100 << 10
	large  = 300 << 10
)

// sample are examples in Go: a worker, a command, and one that calculates.
var sample = []string{"wordcount", "csvstats", "image-thumbnails"}

// TestSameAsBefore plays modules before and after the rewrite. Of the large
// ones it plays one, which is in Go; BenchmarkCost compares another.
func TestSameAsBefore(t *testing.T) {
	t.Parallel()
	const budget = 2_000_000 // some tenths of a second in native code
	for name, wasm := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(wasm) < large || name == "wordcount" {
				same(t, interpreter(), wasm, rewrite.Options{Interval: 100}, budget/10)
			} else if err := valid(rewritten(t, wasm, rewrite.Options{}).Module); err != nil {
				t.Fatal(err)
			}
			if len(wasm) < medium {
				same(t, compiler(), wasm, rewrite.Options{KeepData: true}, budget)
			}
		})
	}
}

// TestSameAsBeforeGenerated does it with modules made at random.
func TestSameAsBeforeGenerated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wasm := generate(t)
		o := rewrite.Options{
			Interval: rapid.SampledFrom([]int{0, 1, 7}).Draw(t, "interval"),
			KeepData: rapid.Bool().Draw(t, "keep data"),
		}
		if err := valid(wasm); err != nil {
			t.Fatalf("the generated module is invalid: %v", err)
		}
		config := compiler()
		if rapid.IntRange(0, 2).Draw(t, "interpreted") == 0 {
			config = interpreter()
		}
		same(t, config, wasm, o, noBudget)
	})
}

// TestLargeCopies checks the pieces of large copies, where both ends overlap
// in either direction, and what is out of bounds.
func TestLargeCopies(t *testing.T) {
	t.Parallel()
	const size, n = 80 << 16, 3<<20 + 123
	a := &assembly{pages: size >> 16, start: -1, functions: []routine{{
		kind: binary2, code: concat([]byte{byte(module.LocalGet), 0, byte(module.LocalGet), 1}, i32(n), []byte{0xfc, 0x0a, 0, 0}, i32(0)),
	}}}
	r := rewritten(t, a.bytes(), rewrite.Options{})
	for name, tc := range map[string]struct{ to, from int }{
		"apart by one, left": {to: 0, from: 1}, "apart by one, right": {to: 1, from: 0}, "in place": {to: 5, from: 5},
		"apart by a piece, left": {to: 10, from: 10 + 1<<20}, "apart by a piece, right": {to: 10 + 1<<20, from: 10},
		"to the very end": {to: size - n, from: 7}, "from the very end": {to: 7, from: size - n},
		"beyond the end": {to: size - n + 1, from: 0}, "from beyond the end": {to: 0, from: size - n + 1},
		"far beyond": {to: -1, from: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := open(compiler(), nil, r)
			if err != nil {
				t.Fatal(err)
			}
			defer g.close()
			memory, _ := g.Memory().Read(0, size)
			for i := range memory {
				memory[i] = byte(i*i>>9 ^ i)
			}
			want := slices.Clone(memory)
			fits := max(tc.to, tc.from) <= size-n && tc.to >= 0
			if fits {
				copy(want[tc.to:], want[tc.from:tc.from+n])
			}
			_, err = g.ExportedFunction("f0").Call(t.Context(), uint64(uint32(tc.to)), uint64(uint32(tc.from)))
			if (err == nil) != fits || !fits && !strings.Contains(err.Error(), "out of bounds memory access") {
				t.Errorf("the copy returned %v", err)
			}
			if !bytes.Equal(memory, want) {
				t.Error("the copy left another memory")
			}
		})
	}
}
