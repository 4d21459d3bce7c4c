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
	os.Exit(m.Run())
}

var cacheDir = filepath.Join(os.TempDir(), fmt.Sprintf("jobhost-test-cache-%d", os.Getuid()))

func newSandboxes(t testing.TB) *process.Sandboxes {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := process.NewSandboxes(process.SandboxConfig{Command: []string{exe, "sandbox"}, CacheDir: cacheDir, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))})
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

func TestEcho(t *testing.T) {
	e := newSandboxes(t)
	p, err := e.Load(t.Context(), runtime.Source{Worker: "echo", Bytes: guests.Echo})
	if err != nil {
		t.Fatal(err)
	}
	i := runtimetest.Instance(t, p)
	for range 3 {
		r := i.Run(t.Context(), runtimetest.Attempt("", "hello"))
		t.Log(r, string(r.Outcome.Output), r.Outcome.Failure)
	}
	p.Close(t.Context())
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
