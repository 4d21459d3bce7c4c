package wasm_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// TestSharedCode: plugins of the same module share its code, and those of others
// don't; it is freed with the last of them.
func TestSharedCode(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"in memory": "", "on disk": filepath.Join(t.TempDir(), "cache")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := wasm.New(wasm.Config{CacheDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Close(context.Background()) }()
			a := load(t, e, guests.Echo, runtime.Limits{})
			b := load(t, e, guests.Echo, runtime.Limits{MemoryBytes: 1 << 20})
			c := load(t, e, guests.Noop, runtime.Limits{})
			if !wasm.SharesCode(a, b) || wasm.SharesCode(a, c) || e.Codes() != 2 {
				t.Errorf("the same %t, others %t, %d pieces of code", wasm.SharesCode(a, b), wasm.SharesCode(a, c), e.Codes())
			}
			if err := a.Close(t.Context()); err != nil || e.Codes() != 2 {
				t.Errorf("%d pieces of code, %v", e.Codes(), err)
			}
			i := runtimetest.Instance(t, b)
			if got := i.Run(t.Context(), runtimetest.Attempt("", "hello")).Outcome; string(got.Output) != "hello" {
				t.Errorf("after the other was closed: %+v", got)
			}
			if err := c.Close(t.Context()); err != nil || e.Codes() != 1 {
				t.Errorf("%d pieces of code, %v", e.Codes(), err)
			}
		})
	}
}

// TestHammerCode loads, runs and closes a few plugins by many goroutines in
// engines with one cache, as processes with one have.
func TestHammerCode(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	var log lockedBuffer
	engines := make([]*wasm.Engine, 3)
	var group sync.WaitGroup
	for n := range engines {
		group.Go(func() {
			var err error
			if engines[n], err = wasm.New(wasm.Config{CacheDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	modules := [][]byte{guests.Echo, guests.Noop, guests.Cat}
	for n := range 12 {
		group.Go(func() {
			for round := range 10 {
				e := engines[(n+round)%len(engines)]
				if err := hammer(t, e, modules[(n*round)%len(modules)]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	for _, e := range engines {
		if e.Codes() != 0 {
			t.Errorf("%d pieces of code are left", e.Codes())
		}
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if log.String() != "" {
		t.Errorf("log: %s", log.String())
	}
	for _, guest := range modules[:2] {
		if log := runCached(t, dir, guest); log != "" {
			t.Errorf("afterwards: %s", log)
		}
	}
}

// hammer loads a plugin, runs a job and closes it.
func hammer(t *testing.T, e *wasm.Engine, module []byte) error {
	p, err := e.Load(t.Context(), runtime.Source{Worker: "test", Bytes: module})
	if err != nil {
		return err
	}
	i, err := p.Instantiate(t.Context())
	if err != nil {
		return err
	}
	if got := i.Run(t.Context(), runtimetest.Attempt("", "hello")).Outcome; got.Failure != nil {
		t.Errorf("%+v", got.Failure)
	}
	if err := i.Close(t.Context()); err != nil {
		return err
	}
	return p.Close(t.Context())
}

// lockedBuffer is a buffer that many write to.
type lockedBuffer struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
