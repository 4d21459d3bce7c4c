package wasiabi_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/goguest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// guest is a command that runs in a module of its own each time, all with one system.
type guest struct {
	t        testing.TB
	system   *wasiabi.System
	frame    *frame
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

func newGuest(t testing.TB, engine wazero.RuntimeConfig, module []byte, cfg wasiabi.Config) *guest {
	t.Helper()
	ctx := context.Background()
	g := &guest{t: t, runtime: wazero.NewRuntimeWithConfig(ctx, engine)}
	t.Cleanup(func() { _ = g.runtime.Close(ctx) })
	if err := wasiabi.Instantiate(ctx, g.runtime); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.compiled, err = g.runtime.CompileModule(ctx, module); err != nil {
		t.Fatal(err)
	}
	if g.system, err = wasiabi.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.system.Close() })
	g.frame = &frame{ctx, g.system}
	return g
}

func (g *guest) run(at *hostcall.Attempt) jobhost.Outcome {
	g.t.Helper()
	g.system.Begin(at, wasiabi.Command)
	// Without a source of its own wazero seeds one for each module, for nothing.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)
	m, err := g.runtime.InstantiateModule(g.frame, g.compiled, config)
	if err != nil {
		g.t.Fatal(err)
	}
	defer m.Close(g.frame)
	code := uint32(0)
	if _, err := m.ExportedFunction("_start").Call(g.frame); err != nil {
		exit, ok := errors.AsType[*wasiabi.Exit](err)
		if !ok {
			g.t.Fatal(err)
		}
		code = exit.Code
	}
	if m.IsClosed() {
		g.t.Error("the module was closed")
	}
	outcome := g.system.Outcome(code)
	g.system.End()
	return outcome
}

func attempt(payload string) *hostcall.Attempt {
	return &hostcall.Attempt{
		Worker: "w", Input: []byte(payload), Labels: map[string]string{"kind": "label"},
		Limits: hostcall.Limits{OutputBytes: 1000, LogBytes: 10_000, LineBytes: 1000},
	}
}

// TestCommand runs a command in C: its libc is what most guests have.
func TestCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := newGuest(t, wazero.NewRuntimeConfigInterpreter(), guests.LibC, wasiabi.Config{
		Mounts: []wasiabi.Mount{{Host: dir, Guest: "/data"}},
	})
	for range 2 {
		for payload, want := range map[string]string{"some text": "SOME TEXT", "files": "files: ok\n", "sleep": "slept\n", "noop": ""} {
			at := attempt(payload)
			got := g.run(at)
			if lines, _ := at.TakeLog(); got.Kind != jobhost.OutcomeSucceeded || string(got.Output) != want {
				t.Errorf("%s: %+v, output %q, log %q", payload, got.Failure, got.Output, lines)
			}
		}
		if got := paths(t, dir); got != "dir dir/b" {
			t.Errorf("left: %s", got)
		}
		if err := os.RemoveAll(filepath.Join(dir, "dir")); err != nil {
			t.Fatal(err)
		}
		for payload, want := range map[string]bool{"exit 75": true, "exit 1": false} {
			f := g.run(attempt(payload)).Failure
			if f == nil || f.Retryable != want || f.Message != strings.Replace(payload, "exit", "exit code", 1)+": about to exit" {
				t.Errorf("%s: %+v", payload, f)
			}
		}
	}
}

// TestGoCommand runs a command in Go, whose runtime and package os do without a libc.
func TestGoCommand(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("building and running a Go guest takes seconds")
	}
	module, err := goguest.Build("../../internal/testing/guests/src/gocommand", goguest.Command)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The compiler takes half a minute for a guest in Go under the race detector.
	g := newGuest(t, wazero.NewRuntimeConfigInterpreter(), module, wasiabi.Config{
		Args:   []string{"one", "two"},
		Mounts: []wasiabi.Mount{{Host: dir, Guest: "/data"}},
	})
	for range 2 {
		at := attempt("edoc")
		got := g.run(at)
		if lines, _ := at.TakeLog(); string(got.Output) != "code [. sub] label true 3" {
			t.Errorf("%+v, output %q, log %q", got.Failure, got.Output, lines)
		}
	}
	if got := paths(t, dir); got != "" {
		t.Errorf("left: %s", got)
	}
}
