package wasm_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
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
func opener(guest []byte) func(*testing.T, runtime.Source) runtime.Plugin {
	return func(t *testing.T, src runtime.Source) runtime.Plugin {
		src.Worker, src.Bytes = "suite", guest
		p, err := newEngine(t).Load(t.Context(), src)
		if err != nil {
			t.Fatalf("load: %v", err)
		}
		return p
	}
}

// TestExtismSuite runs the suite with an Extism plugin.
func TestExtismSuite(t *testing.T) {
	t.Parallel()
	open := opener(guests.Extism)
	runtimetest.Run(t, runtimetest.Subject{
		Open: func(t *testing.T, src runtime.Source) runtime.Plugin {
			src.Entry = "ok"
			return open(t, src)
		},
		Lacks: runtimetest.ExtismLacks(),
	})
}

// TestCommandSuite runs the suite with a WASI command, which is told what to do
// by the first line of its input.
func TestCommandSuite(t *testing.T) {
	t.Parallel()
	runtimetest.Run(t, runtimetest.Subject{
		Open: opener(guests.Command),
		Call: func(behaviour, input string) *hostcall.Attempt {
			return runtimetest.Attempt("", behaviour+"\n"+input)
		},
		Lacks:    runtimetest.CommandLacks(),
		Once:     true,
		FailCode: jobhost.FailExit,
	})
}

func TestSuite(t *testing.T) {
	t.Parallel()
	s := runtimetest.Subject{Open: opener(guests.Outcomes), Lacks: []string{"sleep", "ok"}}
	runtimetest.Run(t, s)
	runtimetest.RunCalls(t, s)
	runtimetest.RunStates(t, runtimetest.Subject{Open: opener(guests.States)})
}
