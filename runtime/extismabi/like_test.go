package extismabi_test

import (
	"testing"

	"github.com/tetratelabs/wazero"
	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/runtime/extismabi"
)

// TestLikeExtism gives the same calls to our kernel and to that of Extism and
// compares the answers, as far as they don't depend on where blocks are.
func TestLikeExtism(t *testing.T) {
	t.Parallel()
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigCompiler())
	t.Cleanup(func() { r.Close(t.Context()) })
	other, err := r.Instantiate(t.Context(), fixture(t, "extism-runtime.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	p, k := newPlugin(t, extismabi.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		d := &differ{T: rt, ours: kernel{rt, k.module}, theirs: kernel{rt, other}}
		p.Reset()
		d.theirs.call("reset")
		rt.Repeat(map[string]func(*rapid.T){
			"alloc": d.alloc, "free": d.free, "length": d.length, "load": d.load, "store": d.store,
			"input": d.input, "output": d.output, "error": d.err, "reset": d.reset,
		})
	})
}

// differ gives calls to two kernels.
type differ struct {
	*rapid.T
	ours, theirs kernel
	blocks       [][2]uint64 // ours and theirs, freed ones too
	live         map[int]uint64
}

// block returns one of the blocks, and a pair of zeros now and then.
func (d *differ) block(rt *rapid.T) (n int, at [2]uint64) {
	n = rapid.IntRange(-1, len(d.blocks)-1).Draw(rt, "block")
	if n < 0 {
		return n, at
	}
	return n, d.blocks[n]
}

// same calls a function of both with arguments after a place, and compares.
func (d *differ) same(name string, at [2]uint64, args ...uint64) uint64 {
	a := d.ours.call(name, append([]uint64{at[0]}, args...)...)
	b := d.theirs.call(name, append([]uint64{at[1]}, args...)...)
	if a != b {
		d.Fatalf("%s of %d and %d with %v: %#x, Extism %#x", name, at[0], at[1], args, a, b)
	}
	return a
}

// place compares two places, which a call returned, by the blocks they are in.
func (d *differ) place(name string) {
	a, b := d.ours.call(name), d.theirs.call(name)
	if a == 0 && b == 0 {
		return
	}
	for _, at := range d.blocks {
		if at[0] == a && at[1] == b {
			return
		}
	}
	d.Fatalf("%s: %d, Extism %d, among %v", name, a, b, d.blocks)
}

func (d *differ) alloc(rt *rapid.T) {
	n := rapid.Uint64Range(0, 3000).Draw(rt, "n")
	at := [2]uint64{d.ours.call("alloc", n), d.theirs.call("alloc", n)}
	if (at[0] == 0) != (at[1] == 0) {
		rt.Fatalf("alloc(%d): %v", n, at)
	}
	if n > 0 {
		if d.live == nil {
			d.live = map[int]uint64{}
		}
		d.live[len(d.blocks)] = n
		d.blocks = append(d.blocks, at)
	}
}

func (d *differ) free(rt *rapid.T) {
	n, at := d.block(rt)
	d.same("free", at)
	delete(d.live, n)
}

func (d *differ) length(rt *rapid.T) {
	_, at := d.block(rt)
	d.same("length", at)
	d.same("length_unsafe", at)
}

// inside draws an index of a block in use, with that many bytes behind it.
func (d *differ) inside(rt *rapid.T, bytes uint64) (at [2]uint64, ok bool) {
	n, at := d.block(rt)
	if d.live[n] < bytes {
		return at, false
	}
	i := rapid.Uint64Range(0, d.live[n]-bytes).Draw(rt, "index")
	return [2]uint64{at[0] + i, at[1] + i}, true
}

func (d *differ) load(rt *rapid.T) {
	if at, ok := d.inside(rt, 1); ok {
		d.same("load_u8", at)
	}
	if at, ok := d.inside(rt, 8); ok {
		d.same("load_u64", at)
	}
}

func (d *differ) store(rt *rapid.T) {
	v := rapid.Uint64().Draw(rt, "value")
	if at, ok := d.inside(rt, 1); ok {
		d.same("store_u8", at, v&0xffffffff)
	}
	if at, ok := d.inside(rt, 8); ok {
		d.same("store_u64", at, v)
	}
}

func (d *differ) input(rt *rapid.T) {
	if n, at := d.block(rt); rapid.Bool().Draw(rt, "set") && (n < 0 || d.live[n] > 0) {
		d.same("input_set", at, max(d.live[n], 1))
	}
	if n := d.ours.call("input_length"); n != d.theirs.call("input_length") {
		rt.Fatalf("input_length: %d, Extism %d", n, d.theirs.call("input_length"))
	}
	d.place("input_offset")
	i := rapid.Uint64Range(0, 4000).Draw(rt, "index")
	d.same("input_load_u8", [2]uint64{i, i})
	// Extism's SDKs load words of the input without its kernel, which has 0 over the end.
	if n := d.ours.call("input_length"); i >= n || i+8 <= n {
		d.same("input_load_u64", [2]uint64{i, i})
	}
}

func (d *differ) output(rt *rapid.T) {
	if n, at := d.block(rt); n < 0 || d.live[n] > 0 {
		d.same("output_set", at, max(d.live[n], 1))
	}
	if n := d.ours.call("output_length"); n != d.theirs.call("output_length") {
		rt.Fatalf("output_length: %d, Extism %d", n, d.theirs.call("output_length"))
	}
	d.place("output_offset")
}

func (d *differ) err(rt *rapid.T) {
	_, at := d.block(rt)
	d.same("error_set", at)
	d.place("error_get")
}

func (d *differ) reset(rt *rapid.T) {
	if rapid.IntRange(0, 9).Draw(rt, "often") > 0 {
		return
	}
	d.ours.call("reset")
	d.theirs.call("reset")
	d.blocks, d.live = nil, nil
}
