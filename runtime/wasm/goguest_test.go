package wasm_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// The guests in Go: where their sources are, and the build mode, which is
// c-shared for workers and exe for commands. Each is built once.
var (
	goSleeper = goGuest("../../internal/testing/guests/src/gosleep", "c-shared")
	goWorker  = goGuest("../../plugins/sdk/go/testdata/guest", "c-shared")
	goCommand = goGuest("../../internal/testing/guests/src/gocanary", "exe")
)

// goGuest returns what builds a guest in Go and returns it.
func goGuest(folder, mode string) func(*testing.T) []byte {
	build := sync.OnceValues(func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "jobhost-guest-*")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		out := filepath.Join(dir, "go.wasm")
		cmd := exec.Command("go", "build", "-buildmode="+mode, "-trimpath", "-ldflags=-s -w", "-o", out, ".")
		cmd.Dir = folder
		// With the commit in it a guest would be another one after each, which nobody has compiled yet.
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false")
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", folder, err, text)
		}
		return os.ReadFile(out)
	})
	return func(t *testing.T) []byte {
		t.Helper()
		if testing.Short() {
			t.Skip("building and compiling a Go guest takes seconds")
		}
		module, err := build()
		if err != nil {
			t.Fatal(err)
		}
		return module
	}
}

func TestGoGuest(t *testing.T) {
	t.Parallel()
	p := load(t, newEngine(t), goSleeper(t), runtime.Limits{MemoryBytes: 32 << 20})
	for _, entry := range []string{"sleep", "spin"} {
		if late := runtimetest.Lateness(t, p, func() *hostcall.Attempt { return runtimetest.Attempt(entry, "") }); late > runtimetest.MaxLateness {
			t.Errorf("%s was stopped %v late", entry, late)
		}
	}
	for _, c := range []struct {
		entry, code, text, log string
		category               jobhost.Category
		replace                runtime.Reason
	}{
		{entry: "deadlock", code: jobhost.FailTrap, text: "unreachable", log: "deadlock", category: jobhost.CategorySystem, replace: runtime.ReplacedTrap},
		{entry: "crash", code: jobhost.FailTrap, text: "unreachable", log: "info about to crash\nwarn panic: runtime error: index out of range", category: jobhost.CategorySystem, replace: runtime.ReplacedTrap},
		{entry: "quit", code: jobhost.FailExit, text: "code 3", category: jobhost.CategorySystem},
		{entry: "hoard", code: jobhost.FailMemory, text: "limit of 32 MiB", log: "out of memory", category: jobhost.CategoryResource, replace: runtime.ReplacedTrap},
	} {
		t.Run(c.entry, func(t *testing.T) {
			i := runtimetest.Instance(t, p)
			if got := i.Run(t.Context(), runtimetest.Attempt("jh_run", "hi")).Outcome; string(got.Output) != "go: hi" {
				t.Fatalf("jh_run: %+v", got)
			}
			at := runtimetest.Attempt(c.entry, "")
			got := i.Run(t.Context(), at)
			f := got.Outcome.Failure
			if f == nil || f.Code != c.code || f.Category != c.category || !strings.Contains(f.Message, c.text) || got.Replace != c.replace {
				t.Errorf("%+v", f)
			}
			if lines, _ := at.TakeLog(); !strings.Contains(string(lines), c.log) {
				t.Errorf("log %q", lines)
			}
		})
	}
}
