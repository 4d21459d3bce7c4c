package process_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// TestFeatures: the features that a worker is allowed, and the reason why it is
// refused, cross the process boundary.
func TestFeatures(t *testing.T) {
	t.Parallel()
	engine := newSandboxes(t)
	src := runtime.Source{Worker: "test", Path: "test.wasm", Bytes: guests.SIMD}
	_, err := engine.Load(t.Context(), src)
	if e, ok := errors.AsType[*jobhost.Error](err); !ok || e.Code != jobhost.CodeInvalid || e.Field != "features" || e.Hint == "" {
		t.Errorf("without the feature: %+v", err)
	}
	src.Features = runtime.Features()
	p, err := engine.Load(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if got := p.Info().Features; !slices.Equal(got, runtime.Features()) {
		t.Errorf("needs %q", got)
	}
	if got := runtimetest.Instance(t, p).Run(t.Context(), runtimetest.Attempt("", "sixteen lanes and more")).Outcome; string(got.Output) != "SIXTEEN LANES AND MORE" {
		t.Errorf("%q, %+v", got.Output, got.Failure)
	}
}

// TestCompileMemory: so do the limit on compiling, and what a module needs.
func TestCompileMemory(t *testing.T) {
	t.Parallel()
	engine := newSandboxes(t)
	_, err := engine.Load(t.Context(), runtime.Source{Worker: "test", Bytes: guests.Echo, Limits: runtime.Limits{CompileBytes: 1 << 10}})
	if e, ok := errors.AsType[*jobhost.Error](err); !ok || e.Code != jobhost.CodeInvalid || e.Field != "compile_memory" || e.Hint == "" {
		t.Errorf("with too little: %+v", err)
	}
	p, err := engine.Load(t.Context(), runtime.Source{Worker: "test", Bytes: guests.Echo, Limits: runtime.Limits{CompileBytes: 8 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if info := p.Info(); info.CompileMemory <= 0 || info.CompileNeed <= 0 {
		t.Errorf("%+v", info)
	}
}
