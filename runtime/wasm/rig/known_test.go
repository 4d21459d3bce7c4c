package rig_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// bytesOf returns the module of a sketch.
func bytesOf(t testing.TB, s rig.Sketch) []byte {
	t.Helper()
	wasm, err := s.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestKnownFaults shows that the compiler is still wrong, so that a version of
// wazero that isn't is noticed, and that the rewrite is right all the same.
func TestKnownFaults(t *testing.T) {
	t.Parallel()
	faults, err := rig.KnownFaults()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range faults {
		t.Run(strings.ReplaceAll(k.Name, " ", "_"), func(t *testing.T) {
			bench := rig.NewBench(t.Context())
			defer bench.Close(t.Context())
			wrong := 0
			for i, sketch := range k.Sketches {
				wasm := bytesOf(t, sketch)
				o, err := bench.Run(t.Context(), wasm, uint64(i))
				if err != nil {
					t.Fatalf("%v\n%s", err, rig.Text(wasm))
				}
				if o.Rewritten != "" {
					t.Errorf("module %d: wrong when it is rewritten: %s\n%s", i, o.Rewritten, rig.Text(wasm))
				}
				if o.Plain != "" {
					wrong++
				}
			}
			if want := k.Arch == runtime.GOARCH; (wrong > 0) != want {
				t.Errorf("%d of %d modules are wrong as they are: if wazero is mended, the rewrite need not avoid this any more", wrong, len(k.Sketches))
			}
		})
	}
}

// TestTypedSelect shows a module that plain wazero takes though its validator and
// its compiler read it differently: to the first, 0x63 and 0x1a are one type, to
// the second 0x1a is a drop. Ours must go on refusing it.
func TestTypedSelect(t *testing.T) {
	t.Parallel()
	// Behind a return, so that what the compiler makes of it does no harm.
	code := slices.Concat(rig.In(module.I32Const, 1), rig.In(module.Return), []byte{0x1c, 1, 0x63, 0x1a}, rig.In(module.Drop), rig.In(module.I32Const))
	s := rig.Sketch{Functions: []rig.Routine{{Results: []byte{module.I32}, Code: code}}}
	for range 0x1a {
		s.Functions = append(s.Functions, rig.Routine{}) // for their types
	}
	wasm := bytesOf(t, s)
	if _, err := rig.Check(wasm); err == nil || !strings.Contains(err.Error(), "value type 0x63 is unknown") {
		t.Errorf("it is not refused for its type: %v", err)
	}
	r := rig.NewRuntime(t.Context(), rig.Compiled)
	defer r.Close(t.Context())
	if err := survive(func() (wazero.CompiledModule, error) { return r.CompileModule(t.Context(), wasm) }); err != nil {
		t.Errorf("wazero refuses it now, which it did not in 1.12: %v", err)
	}
}

// survive turns a panic of the compiler into an error.
func survive(compile func() (wazero.CompiledModule, error)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the compiler panicked: %v", p)
		}
	}()
	_, err = compile()
	return err
}

// TestKnownWorker: as it is the compiler gets the worker wrong, else nothing would
// follow from it that engines get it right.
func TestKnownWorker(t *testing.T) {
	t.Parallel()
	wasm, err := rig.KnownWorker()
	if err != nil {
		t.Fatal(err)
	}
	answer := func(f rig.Form) []byte {
		b, err := rig.Answer(t.Context(), f, wasm)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		return b
	}
	want := answer(rig.Interpreted)
	if len(want) < 5000 {
		t.Errorf("it returns %d bytes", len(want))
	}
	if got := answer(rig.Rewritten); !bytes.Equal(got, want) {
		t.Errorf("rewritten it returns\n%x instead of\n%x", got, want)
	}
	right := bytes.Equal(answer(rig.Compiled), want)
	if right && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
		t.Error("as it is the compiler gets all of it right")
	}
}
