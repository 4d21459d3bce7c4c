package wasm_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// simd are the sources of plugins that need vectors: of one module, and with
// another one that is linked.
func simd(features ...string) map[string]runtime.Source {
	return map[string]runtime.Source{
		"one module": {Worker: "w", Path: "dir/test.wasm", Bytes: guests.SIMD, Features: features},
		"linked": {
			Worker: "w", Path: "dir/test.wasm", ABI: runtime.ABIExtism, Bytes: guests.Extism, Entry: "echo", Features: features,
			Linked: []runtime.Linked{{Name: "lib", Bytes: guests.SIMD}},
		},
	}
}

func TestVectorsRefused(t *testing.T) {
	t.Parallel()
	engine := newEngine(t)
	for name, src := range simd() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := engine.Load(t.Context(), src)
			if err == nil || !strings.HasPrefix(err.Error(), "test.wasm ") || !strings.Contains(err.Error(), "uses vector instructions (SIMD), in function 1") {
				t.Fatalf("without the feature: %v", err)
			}
			e, _ := errors.AsType[*jobhost.Error](err)
			if e.Code != jobhost.CodeInvalid || e.Field != "features" || !strings.Contains(e.Hint, `features = ["simd"]`) {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestVectorsAllowed(t *testing.T) {
	t.Parallel()
	engine := newEngine(t)
	for name, src := range simd(runtime.FeatureSIMD) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := engine.Load(t.Context(), src)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Info().Features; !slices.Equal(got, runtime.Features()) {
				t.Errorf("needs %q", got)
			}
			const text = "Hello, [vectors] of 128 bits {and more}"
			want := strings.ToUpper(text)
			if src.Entry == "echo" {
				want = text
			}
			instance := runtimetest.Instance(t, p)
			for range 2 { // it is reset in between
				if got := instance.Run(t.Context(), runtimetest.Attempt("", text)).Outcome; string(got.Output) != want {
					t.Errorf("%q, %+v", got.Output, got.Failure)
				}
			}
		})
	}
}

func TestFeatures(t *testing.T) {
	t.Parallel()
	engine := newEngine(t)
	p, err := engine.Load(t.Context(), runtime.Source{Worker: "w", Bytes: guests.Echo, Features: runtime.Features()})
	if err != nil || len(p.Info().Features) != 0 {
		t.Errorf("a module that needs nothing: %v", err)
	}
	_, err = engine.Load(t.Context(), runtime.Source{Worker: "w", Path: "test.wasm", Bytes: guests.Echo, Features: []string{"threads"}})
	if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), "unknown feature threads") || !strings.Contains(jobhost.HintOf(err), "simd") {
		t.Errorf("an unknown feature: %v", err)
	}
}

// TestKnownFaultsRun: what the compiler gets wrong without the rewrite, including
// vectors, gives correct results in each job.
func TestKnownFaultsRun(t *testing.T) {
	t.Parallel()
	worker, err := rig.KnownWorker()
	if err != nil {
		t.Fatal(err)
	}
	want, err := rig.Answer(t.Context(), rig.Interpreted, worker)
	if err != nil {
		t.Fatal(err)
	}
	i := runtimetest.Instance(t, opener(worker)(t, runtime.Source{Features: []string{runtime.FeatureSIMD}}))
	for range 2 {
		if got := i.Run(t.Context(), runtimetest.Attempt("", "")).Outcome; !bytes.Equal(got.Output, want) {
			t.Errorf("%x, %+v, want %x", got.Output, got.Failure, want)
		}
	}
}
