package process_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// TestMain makes the test's own binary a sandbox process.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "sandbox" {
		process.ServeSandbox(func(cache string, logger *slog.Logger) (runtime.Engine, error) {
			return wasm.New(wasm.Config{CacheDir: cache, Logger: logger})
		})
		return
	}
	if len(os.Args) >= 2 && os.Args[1] == "guard" {
		os.Exit(process.ServeGuard(os.Args[2:]))
	}
	if len(os.Args) == 4 && os.Args[1] == "host" {
		startHost(os.Args[2], os.Args[3])
		return
	}
	if len(os.Args) >= 3 && os.Args[1] == "rogue" {
		startRogue(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

var cacheDir = filepath.Join(os.TempDir(), fmt.Sprintf("jobhost-test-cache-%d", os.Getuid()))

func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func newSandboxes(t testing.TB) *process.Sandboxes {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := process.NewSandboxes(process.SandboxConfig{Command: []string{exe, "sandbox"}, CacheDir: cacheDir, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// opener loads a guest for the suite.
func opener(guest []byte) runtimetest.Opener {
	return func(t *testing.T, src runtime.Source) runtime.Plugin {
		src.Worker, src.Bytes = "suite", guest
		p, err := newSandboxes(t).Load(t.Context(), src)
		if err != nil {
			t.Fatalf("load: %v", err)
		}
		t.Cleanup(func() {
			if err := p.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return p
	}
}

// sandboxOf loads a guest that runs in so many processes, and closes it at the end of t.
func sandboxOf(t testing.TB, guest []byte, processes int) runtime.Plugin {
	t.Helper()
	p, err := newSandboxes(t).Load(t.Context(), runtime.Source{Worker: "test", Bytes: guest, Processes: processes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestSuite runs the suite of all engines: what a guest does has the same outcome in a process of its own.
func TestSuite(t *testing.T) {
	t.Parallel()
	runtimetest.RunEngine(t, opener)
}

func BenchmarkRun(b *testing.B) {
	e := newSandboxes(b)
	p, err := e.Load(b.Context(), runtime.Source{Worker: "echo", Bytes: guests.Noop})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close(context.Background())
	b.Run("one", func(b *testing.B) {
		i := runtimetest.Instance(b, p)
		at := runtimetest.Attempt("", "hello")
		i.Run(b.Context(), at)
		for b.Loop() {
			i.Run(b.Context(), at)
		}
	})
	b.Run("many", func(b *testing.B) {
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			i, _ := p.Instantiate(b.Context())
			at := runtimetest.Attempt("", "hello")
			for pb.Next() {
				i.Run(b.Context(), at)
			}
		})
	})
}
