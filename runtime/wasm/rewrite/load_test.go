package rewrite_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rewrite"
)

// TestManyImports: a module chooses how many functions it imports, and how often
// it calls the last of them.
func TestManyImports(t *testing.T) {
	took := func(imports int) time.Duration {
		m := &module.Module{
			Start: -1, DataCount: -1, Functions: []uint32{0},
			Types:   []module.FuncType{{}, {Results: []byte{module.I32}}},
			Imports: make([]module.Import, imports),
		}
		for i := range m.Imports {
			m.Imports[i] = module.Import{Module: "m", Name: "f", Kind: module.KindFunction, Type: 1}
		}
		last := concat([]byte{byte(module.Call)}, uleb(imports-1), []byte{byte(module.LocalSet), 0})
		wasm, err := m.Encode(func(b []byte, _ int) ([]byte, error) {
			return append(b, concat([]byte{1, 1, module.I32}, bytes.Repeat(last, 50_000), end)...), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if m, err = module.Read(wasm); err != nil {
			t.Fatal(err)
		}
		best := time.Hour
		for range 3 {
			began := time.Now()
			if _, err := rewrite.Rewrite(m, rewrite.Options{}); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	if few, many := took(10), took(9_000); many > 10*few {
		t.Errorf("%v with 10 imports, %v with 9,000", few, many)
	}
}

// TestTooLarge: instructions of three bytes become some hundred each.
func TestTooLarge(t *testing.T) {
	m := &module.Module{Start: -1, DataCount: -1, Functions: []uint32{0}, Types: []module.FuncType{{}}}
	popcnt := []byte{0xfd, 0x62}
	for n, want := range map[int]error{1_000: nil, 50_000: rewrite.ErrTooLarge} {
		wasm, err := m.Encode(func(b []byte, _ int) ([]byte, error) {
			zero := concat([]byte{0xfd, 0x0c}, make([]byte, 16))
			return append(b, concat([]byte{0}, zero, bytes.Repeat(popcnt, n), []byte{byte(module.Drop)}, end)...), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		read, err := module.Read(wasm)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rewrite.Rewrite(read, rewrite.Options{}); !errors.Is(err, want) {
			t.Errorf("%d of them: %v, want %v", n, err, want)
		}
	}
}
