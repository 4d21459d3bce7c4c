//go:build linux

package wasm_test

import (
	"bytes"
	"context"
	"os"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// holdings are what a process can run out of.
type holdings struct{ descriptors, mappings, goroutines, heap int }

func held(t *testing.T) holdings {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return holdings{len(descriptors), bytes.Count(maps, []byte("\n")), goruntime.NumGoroutine(), int(m.HeapAlloc)}
}

// TestNothingLeaks makes and breaks instances in all ways there are.
func TestNothingLeaks(t *testing.T) {
	e := newEngine(t)
	folder := t.TempDir()
	mounted := runtime.System{Mounts: []runtime.Mount{{Host: folder, Guest: "/data"}}}
	open := func(src runtime.Source) runtime.Plugin {
		src.Worker = "leak"
		p, err := e.Load(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	outcomes := open(runtime.Source{Bytes: guests.Outcomes, System: mounted})
	fresh := open(runtime.Source{Bytes: guests.Outcomes, Isolation: runtime.IsolateFresh})
	plugin := open(runtime.Source{Bytes: guests.Extism, Entry: "ok"})
	trapping := open(runtime.Source{Bytes: guests.InitTrap})
	lost := t.TempDir()
	unmounted := open(runtime.Source{Bytes: guests.Outcomes, System: runtime.System{Mounts: []runtime.Mount{{Host: lost, Guest: "/data"}}}})
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	round := func() {
		for _, p := range []runtime.Plugin{outcomes, fresh, plugin} {
			for _, entry := range []string{"ok", "echo", "trap", "grow", "spin"} {
				s := runtime.NewSandbox(p, nil)
				at := runtimetest.Attempt(entry, "1")
				if entry == "spin" {
					at.Deadline = time.Now().Add(time.Millisecond)
				}
				s.Run(t.Context(), at)
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if i, err := p.Instantiate(stopped); err == nil {
				_ = i.Close(t.Context())
			}
		}
		for _, p := range []runtime.Plugin{trapping, unmounted} {
			if _, err := p.Instantiate(t.Context()); err == nil {
				t.Error("it was instantiated")
			}
		}
		if _, err := e.Load(t.Context(), runtime.Source{Worker: "leak", Bytes: guests.Echo, Entry: "nowhere"}); err == nil {
			t.Error("it was loaded")
		}
		if err := open(runtime.Source{Bytes: guests.Echo}).Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		round()
	}
	before := held(t)
	const rounds = 20
	for range rounds {
		round()
	}
	after := held(t)
	if after.descriptors > before.descriptors || after.goroutines > before.goroutines+1 || after.mappings > before.mappings+rounds/2 || after.heap > before.heap+(1<<20) {
		t.Errorf("%+v became %+v", before, after)
	}
}
