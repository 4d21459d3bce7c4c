package preflight_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/goguest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

// TestCheckModules lets real modules pass, with room to spare. Those in Go are
// nearly the same code: it takes the largest of them, JOBHOST_CHAOS=1 (make chaos) all.
func TestCheckModules(t *testing.T) {
	t.Parallel()
	modules, large, err := originals()
	if err != nil {
		t.Fatal(err)
	}
	if inGo := modules[large:]; os.Getenv("JOBHOST_CHAOS") == "" && len(inGo) > 2 {
		slices.SortFunc(inGo, func(a, b []byte) int { return len(b) - len(a) })
		modules = modules[:large+2]
	}
	for _, b := range modules {
		if _, err := preflight.Check(b, preflight.Limits{CompileBytes: 512 << 20}); err != nil {
			t.Errorf("a module of %d bytes: %v", len(b), err)
		}
	}
}

// originals are the guests of tests and the example workers, the large ones last.
func originals() (modules [][]byte, large int, err error) {
	modules = [][]byte{guests.Noop, guests.Echo, guests.Outcomes, guests.Exit, guests.Init, guests.InitSpin, guests.InitTrap}
	examples, err := goguest.Examples()
	if err != nil {
		return nil, 0, err
	}
	var slow [][]byte
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		if b := examples[name]; len(b) > 1<<20 {
			slow = append(slow, b)
		} else {
			modules = append(modules, b)
		}
	}
	return append(modules, slow...), len(modules), nil
}

func TestLimits(t *testing.T) {
	t.Parallel()
	branches := one(3, times(block, 8), times(brIf, 8), times(end, 8))
	for _, c := range []struct {
		name, message string
		module        []byte
		limits        preflight.Limits
	}{
		{"size", "bytes long, more than 20", guests.Noop, preflight.Limits{ModuleBytes: 20}},
		{"memory", "needs at least 0.125 MiB of memory, the limit is 0.0625 MiB", guests.Echo, preflight.Limits{MemoryPages: 1}},
		{"locals", "function 0 with 3 locals, more than 2", branches, preflight.Limits{Locals: 2}},
		{"nesting", "function 0 with more than 7 nested blocks", branches, preflight.Limits{Nesting: 7}},
		{"body", "function 0 of 60 bytes, more than 59", branches, preflight.Limits{BodyBytes: 59}},
		{"memory of the compiler", "mostly because of instructions", one(0, times(get+load+drop, 300)), preflight.Limits{CompileBytes: 1 << 20}},
		{"time", "mostly because of", one(0, times(block+brIf+end, 2000)), preflight.Limits{CompileTime: time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := preflight.Check(c.module, c.limits)
			if err == nil || !strings.Contains(err.Error(), c.message) || jobhost.CodeOf(err) != jobhost.CodeInvalid {
				t.Errorf("%v", err)
			}
			if _, err := preflight.Check(c.module, preflight.Limits{}); err != nil {
				t.Errorf("with the usual limits: %v", err)
			}
		})
	}
}

func TestExports(t *testing.T) {
	t.Parallel()
	m, err := preflight.Check(guests.Echo, preflight.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	functions := preflight.Functions(m)
	if got := functions["jh_run"]; got != "(i32) → i64" {
		t.Errorf("jh_run is %s", got)
	}
	if !preflight.ExportsMemory(m, "memory") || preflight.ExportsMemory(m, "jh_run") || preflight.ExportsMemory(m, "") {
		t.Error("memory")
	}
	many := module.FuncType{Params: []byte(times("\x7c", 20)), Results: []byte{module.V128, module.ExternRef}}
	if got := preflight.Signature(many); got != "("+times("f64, ", 16)+"…) → (v128, externref)" {
		t.Errorf("signature %s", got)
	}
}

// FuzzCheck looks for panics, for what the compiler dies of although it was
// let pass, and for what takes it long.
func FuzzCheck(f *testing.F) {
	modules, large, err := originals()
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range modules[:large] {
		f.Add(b)
	}
	f.Add([]byte(header))
	r := newRuntime(f.Context())
	f.Cleanup(func() { _ = r.Close(context.Background()) })
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := preflight.Check(b, preflight.Limits{MemoryPages: 1024, Vectors: true}); err != nil {
			return
		}
		start := time.Now()
		if compiled, _ := compile(t.Context(), r, b); compiled != nil {
			_ = compiled.Close(t.Context())
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%d bytes took %s", len(b), d)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	modules, large, err := originals()
	if err != nil {
		b.Fatal(err)
	}
	largest := modules[len(modules)-1]
	if len(modules) == large {
		b.Log("make build makes the module that takes long")
	}
	b.SetBytes(int64(len(largest)))
	for b.Loop() {
		if _, err := preflight.Check(largest, preflight.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSegments: what each instance keeps of segments is bounded.
func TestSegments(t *testing.T) {
	t.Parallel()
	const few, many = 100_000, 100_001
	module := func(elements, data string) []byte {
		return []byte(header + vector(1, 1, noTypes) + vector(3, 1, "\x00") + memory1 + elements + data)
	}
	code := vector(10, 1, body(0, ""))
	element := func(flag string, n int) string { return vector(9, 1, flag+"\x00"+number(n)+times("\x00", n)) }
	named := func(n int) string {
		count := number(n)
		return "\x0c" + number(len(count)) + count + code + vector(11, n, times("\x01\x00", n))
	}
	unnamed := func(n int) string { return code + vector(11, n, times("\x00\x41\x00\x0b\x00", n)) }
	for _, c := range []struct {
		name    string
		module  []byte
		message string // empty = it is fine
	}{
		{"passive entries", module(element("\x01", few), code), ""},
		{"more passive entries", module(element("\x01", many), code), "element segments of 100001 entries, more than 100000"},
		{"more declared entries", module(element("\x03", many), code), ""},
		{"data that code can name", module("", named(few)), ""},
		{"more data that code can name", module("", named(many)), "100001 data segments that its code can name, more than 100000"},
		{"more data", module("", unnamed(many)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := preflight.Check(c.module, preflight.Limits{})
			if (err == nil) != (c.message == "") || err != nil && !strings.Contains(err.Error(), c.message) {
				t.Errorf("%v", err)
			}
		})
	}
}
