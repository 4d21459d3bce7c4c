package snapshot_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/wasm/snapshot"
)

const limit = 16 << 20

// plugin is a compiled guest.
type plugin struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

func compile(t testing.TB, guest []byte) *plugin {
	t.Helper()
	p := &plugin{runtime: wazero.NewRuntime(t.Context())}
	t.Cleanup(func() { _ = p.runtime.Close(context.Background()) })
	wasi_snapshot_preview1.MustInstantiate(t.Context(), p.runtime)
	var err error
	if p.compiled, err = p.runtime.CompileModule(t.Context(), guest); err != nil {
		t.Fatal(err)
	}
	return p
}

// instantiate makes an instance of which the memory begins as an image; start
// functions run only without one.
func (p *plugin) instantiate(t testing.TB, image *snapshot.Image) (api.Module, *snapshot.Memory) {
	t.Helper()
	m, err := snapshot.New(limit, image)
	if err != nil {
		t.Fatal(err)
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	if image == nil {
		config = config.WithStartFunctions("_initialize")
	}
	guest, err := p.runtime.InstantiateModule(experimental.WithMemoryAllocator(t.Context(), m), p.compiled, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = guest.Close(context.Background())
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return guest, m
}

// take returns the image of an instance.
func take(t testing.TB, m *snapshot.Memory) *snapshot.Image {
	t.Helper()
	i, err := snapshot.NewImage(m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}

func call(t testing.TB, guest api.Module, name string, params ...uint64) uint64 {
	t.Helper()
	results, err := guest.ExportedFunction(name).Call(t.Context(), params...)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) == 0 {
		return 0
	}
	return results[0]
}

func reset(t testing.TB, m *snapshot.Memory) snapshot.Stats {
	t.Helper()
	stats, err := m.Reset()
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// TestEcho runs an instance born of an image a thousand times.
func TestEcho(t *testing.T) {
	t.Parallel()
	p := compile(t, guests.Echo)
	_, first := p.instantiate(t, nil)
	image := take(t, first)
	want := bytes.Clone(first.Bytes())
	guest, m := p.instantiate(t, image)
	var last snapshot.Stats
	for n := range 1000 {
		input := bytes.Repeat([]byte(fmt.Sprintf("job %d;", n)), 1+n%50)
		size := uint64(len(input))
		guest.Memory().Write(uint32(call(t, guest, "jh_buf", size)), input)
		place := call(t, guest, "jh_run", size)
		got, ok := guest.Memory().Read(uint32(place>>32), uint32(place))
		if !ok || !bytes.Equal(got, input) {
			t.Fatalf("job %d: %.50q, %v", n, got, ok)
		}
		last = reset(t, m)
		if n%100 == 0 && !bytes.Equal(m.Bytes(), want) {
			t.Fatalf("after job %d the memory is not as it was", n)
		}
	}
	if last.Private > 15 {
		t.Errorf("a C guest holds %d private pages", last.Private)
	}
}

func TestNoop(t *testing.T) {
	t.Parallel()
	p := compile(t, guests.Noop)
	_, first := p.instantiate(t, nil)
	guest, m := p.instantiate(t, take(t, first))
	for range 1000 {
		if got := call(t, guest, "jh_run", 0); got != 0 {
			t.Fatalf("returned %d", got)
		}
		if got := reset(t, m); got.Grown {
			t.Fatalf("%+v", got)
		}
	}
}

// grower is a guest that grows its memory when it starts and on request:
//
//	(module
//	  (memory (export "memory") 1)
//	  (data (i32.const 16) "pristine")
//	  (func (export "_initialize")
//	    (drop (memory.grow (i32.const 3)))
//	    (i32.store (i32.const 200000) (i32.const 7)))
//	  (func (export "run") (param i32) (result i32)
//	    (if (local.get 0) (then (drop (memory.grow (local.get 0)))))
//	    (i32.store (i32.const 200000) (i32.add (i32.load (i32.const 200000)) (i32.const 1)))
//	    (i32.load (i32.const 200000)))
//	  (func (export "pages") (result i32) (memory.size)))
const grower = "0061736d01000000010d0360000060017f017f6000017f03040300010205" +
	"03010001072604066d656d6f727902000b5f696e697469616c697a650000" +
	"0372756e000105706167657300020a3c031000410340001a41c09a0c4107" +
	"3602000b240020000440200040001a0b41c09a0c41c09a0c28020041016a" +
	"36020041c09a0c2802000b04003f000b0b0e010041100b08707269737469" +
	"6e65"

// TestGrown makes instances from the image of a guest that has grown: they
// have its size at once, although the module declares less.
func TestGrown(t *testing.T) {
	t.Parallel()
	code, err := hex.DecodeString(grower)
	if err != nil {
		t.Fatal(err)
	}
	p := compile(t, code)
	_, first := p.instantiate(t, nil)
	guest, m := p.instantiate(t, take(t, first))
	if got := call(t, guest, "pages"); got != 4 {
		t.Fatalf("the guest has %d pages, its image 4", got)
	}
	for n := range 10 {
		if got := call(t, guest, "run", 1); got != 8 {
			t.Fatalf("job %d returned %d", n, got)
		}
		if got := reset(t, m); !got.Grown {
			t.Errorf("job %d: %+v", n, got)
		}
	}
	if got := call(t, guest, "pages"); got != 14 {
		t.Errorf("the guest has %d pages", got)
	}
	call(t, guest, "run", limit/snapshot.PageBytes)
	if !m.Refused() || m.Outgrown() {
		t.Errorf("refused %v, outgrown %v", m.Refused(), m.Outgrown())
	}
	if call(t, guest, "run", 100); !m.Outgrown() {
		t.Error("it may grow as it likes")
	}
}

// TestShrink: a guest that grows in each run finds the same size in each, and
// zeros where others grew.
func TestShrink(t *testing.T) {
	t.Parallel()
	code, err := hex.DecodeString(grower)
	if err != nil {
		t.Fatal(err)
	}
	p := compile(t, code)
	_, first := p.instantiate(t, nil)
	guest, m := p.instantiate(t, take(t, first))
	for n := range 200 {
		if got := call(t, guest, "run", uint64(1+n%3)); got != 8 {
			t.Fatalf("job %d returned %d", n, got)
		}
		// What was grown is written, to its last byte.
		b, _ := guest.Memory().Read(4*snapshot.PageBytes, guest.Memory().Size()-4*snapshot.PageBytes)
		if len(bytes.Trim(b[4:], "\x00")) > 0 {
			t.Fatalf("job %d found what another one wrote", n)
		}
		b[4], b[len(b)-1] = 1, 1
		if m.Outgrown() {
			t.Fatalf("job %d has outgrown its memory", n)
		}
		reset(t, m)
		if !m.Shrink(guest.Memory()) || m.Grown() || call(t, guest, "pages") != 4 {
			t.Fatalf("after job %d there are %d pages", n, guest.Memory().Size()/snapshot.PageBytes)
		}
		if _, ok := guest.Memory().Read(4*snapshot.PageBytes, 1); ok {
			t.Fatal("what was grown can still be read")
		}
	}

	// A module that declares a maximum of two pages, and has both.
	p = compile(t, []byte("\x00asm\x01\x00\x00\x00\x05\x04\x01\x01\x01\x02\x07\x0a\x01\x06memory\x02\x00"))
	guest, m = p.instantiate(t, nil)
	guest.Memory().Grow(1)
	reset(t, m)
	if m.Shrink(guest.Memory()) || !m.Grown() || guest.Memory().Size() != 2*snapshot.PageBytes {
		t.Errorf("a memory at its maximum has %d bytes", guest.Memory().Size())
	}
}

// TestExit closes a module from within: its memory can still be read.
func TestExit(t *testing.T) {
	t.Parallel()
	p := compile(t, guests.Exit)
	guest, m := p.instantiate(t, nil)
	guest.Memory().Write(uint32(call(t, guest, "jh_buf", 1)), []byte("3"))
	_, err := guest.ExportedFunction("jh_run").Call(t.Context(), 1)
	exit, ok := errors.AsType[*sys.ExitError](err)
	if !ok || exit.ExitCode() != 3 {
		t.Fatalf("%v", err)
	}
	if got, ok := guest.Memory().Read(0, guest.Memory().Size()); !ok || len(got) != len(m.Bytes()) {
		t.Errorf("%d bytes", len(got))
	}
	if _, err := m.Reset(); !errors.Is(err, snapshot.ErrClosed) {
		t.Errorf("reset: %v", err)
	}
}
