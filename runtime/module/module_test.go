package module_test

import (
	"errors"
	"os"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/goguest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/module"
)

// modules are the guests of tests and the examples. Those in Go are nearly the same code, that
// of Go's runtime: it takes one, JOBHOST_CHAOS=1 (make chaos) all.
func modules(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{
		"noop": guests.Noop, "echo": guests.Echo, "outcomes": guests.Outcomes, "exit": guests.Exit,
		"init": guests.Init, "init_spin": guests.InitSpin, "init_trap": guests.InitTrap,
	}
	examples, err := goguest.Examples()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range examples {
		if len(b) < 1<<20 || name == "loganalyzer" || os.Getenv("JOBHOST_CHAOS") != "" {
			all[name] = b
		}
	}
	return all
}

func walk(m *module.Module) (instructions int, err error) {
	for f := range m.Bodies {
		code := m.Instructions(f)
		for code.Next() {
			instructions++
		}
		if err := code.Err(); err != nil {
			return instructions, err
		}
	}
	return instructions, nil
}

func TestReadModules(t *testing.T) {
	t.Parallel()
	for name, b := range modules(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := module.Read(b)
			if err != nil {
				t.Fatalf("read: %v", err)
			}
			n, err := walk(m)
			if err != nil {
				t.Fatalf("instructions: %v", err)
			}
			if n == 0 || len(m.Exports) == 0 || len(m.Memories) != 1 {
				t.Errorf("found %d instructions, %d exports, %d memories", n, len(m.Exports), len(m.Memories))
			}
			for _, e := range m.Exports {
				if e.Kind != module.KindFunction {
					continue
				}
				if _, ok := m.FunctionType(e.Index); !ok {
					t.Errorf("export %s has no type", e.Name)
				}
			}
		})
	}
}

func TestReadPrefixes(t *testing.T) {
	t.Parallel()
	for n := range guests.Outcomes {
		m, err := module.Read(guests.Outcomes[:n])
		if err == nil {
			_, err = walk(m)
		}
		if fault, ok := errors.AsType[*module.Error](err); err != nil && (!ok || fault.Offset > n) {
			t.Errorf("prefix of %d bytes: %v", n, err)
		}
	}
}

// FuzzRead looks for panics and for places outside of the module.
func FuzzRead(f *testing.F) {
	for _, b := range [][]byte{guests.Noop, guests.Echo, guests.Outcomes, guests.Exit} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := module.Read(b)
		if err != nil {
			return
		}
		for i := range m.Bodies {
			code := m.Instructions(i)
			for code.Next() {
				if code.Start >= code.End || code.End > m.Bodies[i].End {
					t.Fatalf("an instruction from %d to %d in a body up to %d", code.Start, code.End, m.Bodies[i].End)
				}
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	wasm := modules(b)["loganalyzer"]
	b.SetBytes(int64(len(wasm)))
	for b.Loop() {
		m, err := module.Read(wasm)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := walk(m); err != nil {
			b.Fatal(err)
		}
	}
}
