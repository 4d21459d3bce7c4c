package wasm_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/goguest"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// The guests in Go, by where their sources are. Each is built once.
var (
	goSleeper = goGuest("../../internal/testing/guests/src/gosleep", goguest.Worker)
	goWorker  = goGuest("../../plugins/sdk/go/testdata/guest", goguest.Worker)
	goCommand = goGuest("../../internal/testing/guests/src/gocanary", goguest.Command)
)

// goGuest returns what builds a guest in Go and returns it.
func goGuest(folder string, mode goguest.Mode) func(*testing.T) []byte {
	build := sync.OnceValues(func() ([]byte, error) { return goguest.Build(folder, mode) })
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
