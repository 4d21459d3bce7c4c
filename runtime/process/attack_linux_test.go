package process_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/process"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// Package wasm tests what guests can do to a host's process when they run in it.
// Here they do the same in a process of their own, which has to keep working too:
// other jobs of the worker run in it.

// TestFaultsAreStopped: guests that touch page after page are stopped in time by their process,
// rather than together with it: only the process reports that it has stopped one.
func TestFaultsAreStopped(t *testing.T) {
	for _, s := range runtimetest.Faults() {
		t.Run(s.Name, func(t *testing.T) {
			w := newWalled(t, process.SandboxConfig{CacheDir: cacheDir})
			p := w.load(t, runtime.Source{Worker: "faults", Bytes: s.Module, Limits: runtime.Limits{MemoryBytes: s.Memory}})
			late := runtimetest.Lateness(t, p, func() *hostcall.Attempt { return runtimetest.Attempt("", "") })
			// Processes share a busy machine; without a yield this took seconds.
			if late > 5*runtimetest.MaxLateness {
				t.Errorf("stopped %v late", late)
			}
		})
	}
}

// TestNamesTakeNoMemory: neither loading a module with long names nor reporting
// where it trapped takes much memory for them.
func TestNamesTakeNoMemory(t *testing.T) {
	for name, module := range runtimetest.NameBombs() {
		t.Run(name, func(t *testing.T) {
			w := newWalled(t, process.SandboxConfig{CacheDir: cacheDir})
			p := w.load(t, runtime.Source{Worker: "names", Bytes: module})
			pid := w.pid(t)
			before := sizeOf(t, pid, "VmRSS")
			if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil { // resets VmHWM
				t.Fatal(err)
			}
			i := runtimetest.Instance(t, p)
			for range 2 {
				got := i.Run(t.Context(), runtimetest.Attempt("", "")).Outcome
				if f := got.Failure; f == nil || f.Code != jobhost.FailTrap || !strings.Contains(f.Stack, "()") {
					t.Fatalf("%+v", got)
				}
			}
			if peak := sizeOf(t, pid, "VmHWM") - before; peak > runtimetest.BombBytes*raceFactor {
				t.Errorf("two traps took %d MiB", peak>>20)
			}
		})
	}
}

// TestKnownFaultsRun: what the compiler gets wrong without the rewrite, including
// vectors, gives correct results in each job.
func TestKnownFaultsRun(t *testing.T) {
	t.Parallel()
	worker, err := rig.KnownWorker()
	if err != nil {
		t.Fatal(err)
	}
	want, err := rig.Answer(t.Context(), rig.Interpreted, worker)
	if err != nil {
		t.Fatal(err)
	}
	i := runtimetest.Instance(t, opener(worker)(t, runtime.Source{Features: []string{runtime.FeatureSIMD}}))
	for range 2 {
		if got := i.Run(t.Context(), runtimetest.Attempt("", "")).Outcome; !bytes.Equal(got.Output, want) {
			t.Errorf("%x, %+v, want %x", got.Output, got.Failure, want)
		}
	}
}
