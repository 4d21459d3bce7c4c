package extismabi_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero/api"
	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/runtime/extism"
	"github.com/jobhost/jobhost/runtime/extismabi"
)

// TestKernelIsBuilt compares kernel.wasm with its source.
func TestKernelIsBuilt(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed (Debian: wabt)")
	}
	built := filepath.Join(t.TempDir(), "kernel.wasm")
	if out, err := exec.Command(tool, "kernel.wat", "-o", built).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("kernel.wasm"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("kernel.wasm is not that of kernel.wat: run build.sh (%v)", err)
	}
}

// kernel is a kernel whose functions a test calls directly.
type kernel struct {
	t      rapid.TB
	module api.Module
}

// call calls a function and returns its result, 0 without one.
func (k kernel) call(name string, args ...uint64) uint64 {
	k.t.Helper()
	f := k.module.ExportedFunction(name)
	results, err := f.Call(&frame{Context: context.Background()}, args...)
	switch types := f.Definition().ResultTypes(); {
	case err != nil:
		k.t.Fatalf("%s%v: %v", name, args, err)
	case len(types) == 0:
		return 0
	case types[0] == api.ValueTypeI32: // above it, the stack has anything
		return uint64(api.DecodeU32(results[0]))
	}
	return results[0]
}

// isNew reports whether all of the memory is zero.
func (k kernel) isNew() bool {
	all, ok := k.module.Memory().Read(0, k.module.Memory().Size())
	return ok && zero(all)
}

func zero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }

func newPlugin(t testing.TB, o extismabi.Options) (*extismabi.Plugin, kernel) {
	t.Helper()
	p, err := compiler().kernel.NewPlugin(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(t.Context()) })
	return p, kernel{t, p.Resolve(extismabi.Module)}
}

// TestFunctions compares what guests may import with what the kernel exports.
func TestFunctions(t *testing.T) {
	t.Parallel()
	_, k := newPlugin(t, extismabi.Options{})
	exports := k.module.ExportedFunctionDefinitions()
	functions := extismabi.Functions()
	if len(functions) != 32 || len(exports) != len(functions) {
		t.Errorf("%d functions, %d exports", len(functions), len(exports))
	}
	for _, f := range functions {
		export, ok := exports[f.Name]
		if !ok || !bytes.Equal(export.ParamTypes(), f.Params) || !bytes.Equal(export.ResultTypes(), f.Results) {
			t.Errorf("%s: %v", f.Name, export)
		}
	}
}

// TestLayout compares what Go and the kernel think of the same memory.
func TestLayout(t *testing.T) {
	t.Parallel()
	p, k := newPlugin(t, extismabi.Options{})
	for _, n := range []int{1, 7, 8, 9, 1000, 1 << 16, 200_000} {
		at := attempt(string(bytes.Repeat([]byte("x"), n)))
		if failure := p.Begin(at); failure != nil {
			t.Fatal(failure.Message)
		}
		input := k.call("input_offset")
		if got := k.call("length", input); got != uint64(n) || k.call("input_length") != got {
			t.Errorf("%d bytes: the block has %d, the input %d", n, got, k.call("input_length"))
		}
		next := k.call("alloc", 20)
		if next < input+uint64(n) || k.call("load_u8", next-1) == 'x' {
			t.Errorf("%d bytes at %d, the next block at %d", n, input, next)
		}
		k.call("output_set", input, uint64(n))
		if got := p.End(at, 0); !bytes.Equal(got.Output, at.Input) {
			t.Errorf("%d bytes: output %d, %+v", n, len(got.Output), got.Failure)
		}
		k.call("store_u8", next, 'e')
		k.call("error_set", next)
		if got := p.End(at, 0); got.Failure == nil || got.Failure.Message != `e`+nulls(19) {
			t.Errorf("%+v", got.Failure)
		}
		k.call("free", input)
		if got := k.call("input_length"); got != 0 {
			t.Errorf("the freed input has %d bytes", got)
		}
		p.Reset()
	}
}

// nulls is how zero bytes are shown.
func nulls(n int) string { return string(bytes.Repeat([]byte(`\x00`), n)) }

// TestKernelEdges are the results for edge cases, which the plugin kits rely on.
func TestKernelEdges(t *testing.T) {
	t.Parallel()
	p, k := newPlugin(t, extismabi.Options{Limits: extism.Limits{MemoryBytes: 1 << 20}})
	if failure := p.Begin(attempt("")); failure != nil {
		t.Fatal(failure.Message)
	}
	const far = 1<<64 - 4
	for _, n := range []uint64{0, 1 << 20, 1 << 32, 1<<32 + 1, 0xc0000001, far} {
		if got := k.call("alloc", n); got != 0 {
			t.Errorf("alloc(%d) = %d", n, got)
		}
	}
	if !p.Refused() {
		t.Error("nobody was refused memory")
	}
	b := k.call("alloc", 10)
	for _, at := range []uint64{0, 1, 8, 511, b - 1, b + 1, b + 8, b + 1000, b + 1<<32, 1 << 20, 1 << 32, far} {
		k.call("free", at)
		if at < b-16 || at > b+24 {
			k.call("store_u64", at, 1<<64-1)
			k.call("store_u8", at, 0xff)
		}
		if got := k.call("length", at) + k.call("length_unsafe", at); got != 0 {
			t.Errorf("there is a block of %d bytes at %d", got, at)
		}
		if got := k.call("load_u8", at) + k.call("load_u64", at); at != b-1 && got != 0 {
			t.Errorf("%x at %d", got, at)
		}
		k.call("input_set", at, 1<<20)
		k.call("output_set", at, far)
	}
	k.call("input_set", b, 10)
	k.call("store_u64", b+2, 0x0807060504030201)
	for i, want := range map[uint64]uint64{0: 0x0605040302010000, 2: 0x0807060504030201, 3: 0x0008070605040302, 9: 8, 10: 0, far: 0} {
		if got := k.call("input_load_u64", i); got != want {
			t.Errorf("input_load_u64(%d) = %x", i, got)
		}
	}
	// A word that crosses the end of the used heap has the bytes that are there, and uses no others.
	end := b + 16
	k.call("store_u64", end-8, 0x1817161514131211)
	k.call("store_u64", end-3, 0xffffffffffccbbaa)
	for at, want := range map[uint64]uint64{end - 8: 0xccbbaa1514131211, end - 3: 0xccbbaa, end - 1: 0xcc, end: 0} {
		if got := k.call("load_u64", at); got != want {
			t.Errorf("load_u64 %d before the end = %x", end-at, got)
		}
	}
	if next := k.call("alloc", 8); next <= end || k.call("load_u64", next) != 0 {
		t.Errorf("the block at %d behind %d is not new", next, end)
	}
	k.call("store_u64", b+2, 0x0807060504030201)
	for i, want := range map[uint64]uint64{9: 8, 10: 0, far: 0} {
		if got := k.call("input_load_u8", i); got != want {
			t.Errorf("input_load_u8(%d) = %x", i, got)
		}
	}
	k.call("free", b)
	k.call("free", b)
	if got := k.call("length", b); got != 0 {
		t.Errorf("the freed block has %d bytes", got)
	}
	if got := k.call("output_length") + k.call("error_get"); got != 0 {
		t.Errorf("output and error are set: %d", got)
	}
}

// TestAlloc: blocks don't overlap, are zero, and are used again.
func TestAlloc(t *testing.T) {
	t.Parallel()
	p, k := newPlugin(t, extismabi.Options{Limits: extism.Limits{MemoryBytes: 1 << 20}})
	full := bytes.Repeat([]byte{0xff}, 40_000)
	rapid.Check(t, func(rt *rapid.T) {
		k := kernel{rt, k.module}
		p.Reset()
		blocks := map[uint64]uint64{}
		for range rapid.IntRange(1, 100).Draw(rt, "steps") {
			for at := range blocks {
				if rapid.Bool().Draw(rt, "free") {
					k.call("free", at)
					delete(blocks, at)
				}
				break
			}
			n := rapid.OneOf(rapid.Uint64Range(1, 100), rapid.Uint64Range(1, 40_000)).Draw(rt, "n")
			at := k.call("alloc", n)
			if at == 0 {
				continue
			}
			for other, size := range blocks {
				if at < other+size && other < at+n {
					rt.Fatalf("%d bytes at %d overlap %d at %d", n, at, size, other)
				}
			}
			if got := k.call("length", at); got != n {
				rt.Fatalf("a block of %d has %d bytes", n, got)
			}
			memory, _ := k.module.Memory().Read(uint32(at), uint32(n))
			if !zero(memory) {
				rt.Fatalf("a block of %d at %d is not zero", n, at)
			}
			copy(memory, full)
			blocks[at] = n
		}
		p.Reset()
		if !k.isNew() {
			rt.Fatal("memory is not zero after a reset")
		}
	})
}
