package wasm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// goGuest builds the worker in Go that is in a folder.
func goGuest(t *testing.T, folder string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "go.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, text)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func TestGoGuest(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("building and compiling a Go guest takes seconds")
	}
	p := load(t, newEngine(t), goGuest(t, "../../internal/testing/guests/src/gosleep"), runtime.Limits{MemoryBytes: 32 << 20})
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
