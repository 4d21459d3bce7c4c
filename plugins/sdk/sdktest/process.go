package sdktest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/process"
)

// Main is the TestMain of tests with [Process]: the test's own program stands between the engine and
// its processes.
func Main(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "guard" {
		os.Exit(process.ServeGuard(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// Executable is an SDK under test for workers that are processes, in the form of a program
// with the entries of a [Subject], of which default is jh_run, and some more: plugins/sdk/process/conform says what
// each has to do.
type Executable struct {
	Path string
	Env  map[string]string // besides what all have
}

// OpenProcess is [Open] for a worker that is a process, such as an example.
func OpenProcess(t *testing.T, e Executable) *Worker {
	t.Helper()
	src := runtime.Source{Worker: "worker", Path: e.Path, ABI: runtime.ABIProcess, Env: e.Env}
	return &Worker{newSandbox(t, open(t, src, slog.New(slog.NewTextHandler(t.Output(), nil))))}
}

// Pinned sees that a manifest has the digest of a worker that lies beside it.
func Pinned(t *testing.T, manifest, program string) {
	t.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("sha256 = \"%x\"\n", sha256.Sum256(data)); !strings.Contains(string(text), want) {
		t.Errorf("%s should have: %s", manifest, want)
	}
}

// open loads a native plugin.
func open(t testing.TB, src runtime.Source, logger *slog.Logger) runtime.Plugin {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := process.NewNatives(process.NativeConfig{Guard: []string{self, "guard"}, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	if src.Path, err = filepath.Abs(src.Path); err != nil {
		t.Fatal(err)
	}
	if src.Bytes, err = os.ReadFile(src.Path); err != nil {
		t.Fatal(err)
	}
	src.Limits.MemoryBytes = 1 << 30
	src.Slots = processSlots
	p, err := e.Load(t.Context(), src)
	if err != nil {
		t.Fatalf("load %s: %v", src.Path, err)
	}
	p = &once{Plugin: p}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("close %s: %v", src.Path, err)
		}
	})
	return p
}

// once is a plugin that may be closed before its test has ended.
type once struct {
	runtime.Plugin

	close sync.Once
	err   error
}

// Close implements [runtime.Plugin].
func (o *once) Close(ctx context.Context) error {
	o.close.Do(func() { o.err = o.Plugin.Close(ctx) })
	return o.err
}

// processSlots is how many jobs run at one time in a process under test.
const processSlots = 64
