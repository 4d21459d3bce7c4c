package preflight_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

// TestVectorsAllowed lets the modules with vectors of testdata/evil pass where
// vectors are allowed, and notices them in each.
func TestVectorsAllowed(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/evil/simd-*.hex")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".hex"), func(t *testing.T) {
			t.Parallel()
			m, err := preflight.Check(readHex(t, path), preflight.Limits{Vectors: true})
			if err != nil {
				t.Fatal(err)
			}
			if !m.Vectors {
				t.Error("the vectors were not noticed")
			}
		})
	}
}

func TestNoVectors(t *testing.T) {
	t.Parallel()
	for _, b := range [][]byte{guests.Echo, guests.Outcomes, guests.CanaryTable, guests.Extism} {
		m, err := preflight.Check(b, preflight.Limits{Vectors: true})
		if err != nil || m.Vectors {
			t.Errorf("a module without vectors: %v", err)
		}
	}
}

// TestVectorOpcodes: an instruction that takes or gives a vector is refused where
// there may be none.
func TestVectorOpcodes(t *testing.T) {
	t.Parallel()
	seen := 0
	for op := range uint32(1 << 16) {
		o := module.Describe(op)
		if o == nil || o.Push != module.V128 && strings.IndexByte(o.Pop, module.V128) < 0 {
			continue
		}
		seen++
		if !module.IsVector(op) {
			t.Errorf("%s has vectors and is no vector instruction", o.Name)
		}
		code := []byte{0x00, byte(op >> 8), byte(op)} // behind unreachable
		if byte(op) >= 0x80 {
			code = append(code, byte(op>>7&1))
		}
		code = append(code, operands(o.Operands)...)
		b := one(0, string(append(code, 0x00)))
		if _, err := preflight.Check(b, preflight.Limits{}); err == nil || !strings.Contains(err.Error(), "uses vector instructions (SIMD), in function 0") {
			t.Errorf("%s: %v", o.Name, err)
		}
	}
	if seen < 200 {
		t.Errorf("there are only %d", seen)
	}
}

// operands are zeros for what follows a vector instruction.
func operands(kind module.Operands) []byte {
	n := map[module.Operands]int{module.Memory: 2, module.MemoryLane: 3, module.Lane: 1, module.Lanes: 16, module.Vector: 16}[kind]
	return bytes.Repeat([]byte{0}, n)
}
