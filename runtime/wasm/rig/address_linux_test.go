package rig_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

const (
	space     = 4 << 30
	mostPages = space>>16 - 1 // as many as the host allows
	window    = 64            // bytes around an address that are compared
)

// outside is a memory of nearly 4 GiB with as much before it that belongs to
// another owner, which takes room only where it is used.
type outside []byte

func newOutside(t *testing.T) outside {
	t.Helper()
	b, err := unix.Mmap(-1, 0, 2*space, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		t.Skipf("there are no %d bytes of address space: %v", 2*space, err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b
}

func (o outside) Allocate(_, _ uint64) experimental.LinearMemory { return o }
func (o outside) Reallocate(size uint64) []byte                  { return o[space : space+size : space+size] }
func (outside) Free()                                            {}

// at returns what is around an address, and what is 4 GiB before it.
func (o outside) at(address uint64) [2][]byte {
	return [2][]byte{o[address-window : address+window], o[space+address-window : space+address+window]}
}

// TestHighAddresses uses constant addresses above 2 GiB, in all instructions that
// access memory, once to have their bounds checked and again after a call. The
// compiler for amd64 believes the bounds the second time, but takes the address
// for a negative number: it reaches what lies before the memory.
func TestHighAddresses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var results [3][]string
	var names []string
	for form := rig.Interpreted; form <= rig.Rewritten; form++ {
		memory := newOutside(t)
		r := rig.NewRuntime(ctx, form)
		names = names[:0]
		for op := range uint32(0xfe00) {
			o := module.Describe(op)
			if o == nil || !o.Accesses() {
				continue
			}
			for _, place := range []struct{ address, offset uint64 }{
				{1 << 31, 0}, {1<<31 + 40, 3}, {0x9000_0000, 0x6ffe_0000}, {0xc123_4567, 1}, {mostPages<<16 - window, 0},
			} {
				names = append(names, fmt.Sprintf("%s at %#x+%#x", o.Name, place.address, place.offset))
				results[form] = append(results[form], access(ctx, t, r, form, memory, op, place.address, place.offset))
			}
		}
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	wrong := 0
	for i, want := range results[rig.Interpreted] {
		if got := results[rig.Rewritten][i]; got != want {
			t.Errorf("%s: %s instead of %s", names[i], got, want)
		}
		if results[rig.Compiled][i] != want {
			wrong++
		}
	}
	if want := runtime.GOARCH == "amd64"; (wrong > 0) != want {
		t.Errorf("%d of %d accesses are wrong as they are: if wazero is mended, the rewrite need not avoid this any more", wrong, len(names))
	}
}

// access accesses an address twice and tells the result, and what is in memory then.
func access(ctx context.Context, t *testing.T, r wazero.Runtime, form rig.Form, memory outside, op uint32, address, offset uint64) string {
	t.Helper()
	around := memory.at(address + offset)
	for half := range around {
		for i := range around[half] {
			around[half][i] = byte(i + 0x40 + 0x70*half)
		}
	}
	wasm := accesses(t, op, address, offset)
	ctx = experimental.WithMemoryAllocator(ctx, memory)
	guest, err := rig.Instantiate(ctx, r, form, wasm, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = guest.Close(ctx) }()
	var params []uint64
	for range guest.ExportedFunction("f0").Definition().ParamTypes() {
		params = append(params, 0x1122334455667788)
	}
	if params != nil && guest.ExportedFunction("f0").Definition().ParamTypes()[0] == module.V128 {
		params = append(params, 0x99aabbccddeeff00)
	}
	got, err := guest.ExportedFunction("f0").Call(ctx, params...)
	return fmt.Sprintf("%x %v, %x", got, rig.Trap(err), around)
}

// accesses is a module with a function that accesses an address twice.
func accesses(t *testing.T, op uint32, address, offset uint64) []byte {
	o := module.Describe(op)
	f := rig.Routine{Params: []byte(o.Pop[1:]), Locals: []byte{module.I32}}
	place := uint64(len(f.Params))
	once := rig.In(module.LocalGet, place)
	if len(f.Params) > 0 {
		once = append(once, rig.In(module.LocalGet, 0)...)
	}
	accessing := module.Instruction{Op: op, Immediate: offset}
	once = accessing.Append(once)
	f.Code = slices.Concat(rig.In(module.I32Const, uint64(int64(int32(address)))), rig.In(module.LocalSet, place), once)
	if o.Push != 0 {
		f.Results = []byte{o.Push}
		f.Code = append(f.Code, rig.In(module.Drop)...)
	}
	f.Code = slices.Concat(f.Code, rig.In(module.Call, 1), once)
	grown := rig.Routine{Code: slices.Concat(rig.In(module.I32Const), rig.In(module.MemoryGrow), rig.In(module.Drop))}
	s := rig.Sketch{Functions: []rig.Routine{f, grown}, Memory: true}
	sketched, err := s.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	m, err := module.Read(sketched)
	if err != nil {
		t.Fatal(err)
	}
	m.Memories[0] = module.Limits{Min: mostPages, Max: mostPages, HasMax: true}
	wasm, err := m.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}
