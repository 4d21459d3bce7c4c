package wasm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	wasmmodule "github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// recursions are modules whose function f calls itself without end, and keeps
// as much on the stack meanwhile as its code can say.
func recursions() map[string][]byte {
	const (
		typeWide = 1 // () → 1,000 i32
		typeEats = 2 // 1,000 i32 → ()
	)
	wide := strings.Repeat("\x7f", 1000)
	types := "\x03" + "\x60\x00\x00" + "\x60\x00" + uleb(1000) + wide + "\x60" + uleb(1000) + wide + "\x00"
	build := func(locals string, code ...string) []byte {
		body := func(b string) string { return uleb(len(b)) + b }
		functions := []string{
			locals + strings.Join(code, "") + "\x0b",          // f
			"\x00" + strings.Repeat(number(0), 1000) + "\x0b", // wide
			"\x00" + number(0) + "\x24\x00" + "\x0b",          // eats
		}
		section := "\x03"
		for _, f := range functions {
			section += body(f)
		}
		return module("\x01"+types, "\x03\x03\x00"+uleb(typeWide)+uleb(typeEats), "\x05\x01\x00\x01",
			"\x06\x02\x7f\x01\x41\x00\x0b\x7b\x01\xfd\x0c"+strings.Repeat("\x00", 16)+"\x0b", "\x07\x01\x01f\x00\x00", "\x0a"+section)
	}
	drops := func(n int) string { return strings.Repeat("\x24\x00", n) }
	vectors := func(n int) string { return strings.Repeat("\x24\x01", n) }
	all := map[string][]byte{
		"nothing":           build("\x00", call(0)),
		"sizes of memory":   build("\x00", strings.Repeat("\x3f\x00", 3000), call(0), drops(3000)),
		"globals":           build("\x00", strings.Repeat("\x23\x00", 3000), call(0), drops(3000)),
		"vectors":           build("\x00", strings.Repeat("\x23\x01", 3000), call(0), vectors(3000)),
		"vectors, mixed":    build("\x00", strings.Repeat("\x23\x01\x23\x01\xfd\x51", 1500), call(0), vectors(1500)),
		"results of calls":  build("\x00", strings.Repeat(call(1), 20), call(0), strings.Repeat(call(2), 20)),
		"floats, converted": build("\x00", strings.Repeat("\x23\x00\xb7\xb6", 1000), call(0), strings.Repeat("\xa8\x24\x00", 1000)),
		"a loop":            build("\x00", "\x03\x40", strings.Repeat("\x23\x00", 50), call(0), drops(50), "\x0c\x00\x0b"),
	}
	return all
}

// TestStackGrowthIsBounded: between two yields a stack grows by no more than
// the rewrite says. What is granted to sandboxes depends on it.
func TestStackGrowthIsBounded(t *testing.T) {
	t.Parallel()
	for name, b := range recursions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := wasmmodule.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			rewritten, err := rewrite.Rewrite(m, rewrite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			most, yields := growth(t, rewritten)
			if yields < 3 {
				t.Errorf("it yielded %d times", yields)
			}
			if most > rewritten.StackGrowth {
				t.Errorf("the stack grew by %d bytes between two yields, not by %d at most", most, rewritten.StackGrowth)
			}
			t.Logf("%d of %d bytes", most, rewritten.StackGrowth)
		})
	}
}

// growth runs f and returns how much its stack grew between two yields at most.
func growth(t *testing.T, rewritten *rewrite.Result) (most, yields int) {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer func() { _ = r.Close(ctx) }()
	var stack *[]byte
	before := 0
	hook := api.GoModuleFunc(func(_ context.Context, _ api.Module, view []uint64) {
		top := uintptr(unsafe.Pointer(unsafe.SliceData(*stack))) + uintptr(len(*stack))
		used := int(top - uintptr(unsafe.Pointer(unsafe.SliceData(view))))
		most = max(most, used-before)
		before = used
		yields++
	})
	if _, err := r.NewHostModuleBuilder(rewrite.HookModule).NewFunctionBuilder().WithGoModuleFunction(hook, nil, nil).Export(rewrite.Hook).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	guest, err := r.Instantiate(ctx, rewritten.Module)
	if err != nil {
		t.Fatal(err)
	}
	f := guest.ExportedFunction("f")
	stack = wasm.StackOf(f)
	if _, err := f.Call(ctx); err == nil || !strings.Contains(fmt.Sprint(err), "stack overflow") {
		t.Errorf("it ended with %v", err)
	}
	return most, yields
}
