package wasm_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// cacheDir is shared by all tests and their later runs, so that each guest is
// compiled once.
var cacheDir = filepath.Join(os.TempDir(), fmt.Sprintf("jobhost-test-cache-%d", os.Getuid()))

// newEngine returns an engine that is closed at the end of t.
func newEngine(t testing.TB) *wasm.Engine {
	t.Helper()
	e, err := wasm.New(wasm.Config{CacheDir: cacheDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return e
}

// load loads a guest that has to load.
func load(t testing.TB, e *wasm.Engine, module []byte, limits runtime.Limits) runtime.Plugin {
	t.Helper()
	p, err := e.Load(t.Context(), runtime.Source{Worker: "test", Path: "test.wasm", Bytes: module, Limits: limits})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return p
}

// opener loads a guest for the suite.
func opener(guest []byte) runtimetest.Opener {
	return func(t *testing.T, src runtime.Source) runtime.Plugin {
		src.Worker, src.Bytes = "suite", guest
		p, err := newEngine(t).Load(t.Context(), src)
		if err != nil {
			t.Fatalf("load: %v", err)
		}
		return p
	}
}

// TestSuite runs the suite of all engines.
func TestSuite(t *testing.T) {
	t.Parallel()
	runtimetest.RunEngine(t, opener)
}
