package host_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/manifest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
)

// closingEngine tells of the plugins that are closed, by the digest of their module.
type closingEngine struct {
	runtime.Engine
	closed chan string
}

type closingPlugin struct {
	runtime.Plugin
	engine *closingEngine
}

func (e *closingEngine) Load(ctx context.Context, src runtime.Source) (runtime.Plugin, error) {
	plugin, err := e.Engine.Load(ctx, src)
	if err != nil {
		return nil, err
	}
	return &closingPlugin{plugin, e}, nil
}

func (p *closingPlugin) Close(ctx context.Context) error {
	p.engine.closed <- p.Info().SHA256
	return p.Plugin.Close(ctx)
}

// TestFibersOverReload: a fiber stays on the version that it began with, which is
// closed with its end; the next one is of the new version.
func TestFibersOverReload(t *testing.T) {
	t.Parallel()
	cfg := fiberConfig(t)
	source := &source{workers: slices.Clone(cfg.Workers)}
	cfg.Reread = source.reread
	engine := &closingEngine{cfg.Engine, make(chan string, 10)}
	cfg.Engine = engine
	h, _ := run(t, cfg)
	k := start(t, h, "old")
	k.ask("count", "1")
	before := status(t, h, "test").SHA256

	changed := source.workers[0]
	changed.Plugin, changed.Entry = guests.Outcomes, "fiber"
	source.set(changed, source.workers[1])
	reload(t, h, "", "echo:unchanged:1 test:changed:2")
	k.ask("count", "2")
	other := start(t, h, "new")
	other.ask("count", "count") // the new version doesn't know the word
	select {
	case digest := <-engine.closed:
		t.Fatalf("plugin %s was closed while a fiber ran on it", digest)
	default:
	}
	k.say("end")
	k.over()
	if digest := <-engine.closed; digest != before {
		t.Errorf("plugin %s was closed, want %s", digest, before)
	}
	other.ask("ping", "ping")

	// Without its worker it ends.
	source.set(source.workers[1])
	reload(t, h, "", "echo:unchanged:1 test:removed:0")
	if f := other.over(); f.Status != jobhost.FiberKilled {
		t.Errorf("the fiber of a worker that is gone is %+v", f)
	}
	if _, err := h.StartFiber(t.Context(), jobhost.FiberSpec{ID: "late", Worker: "test"}); jobhost.CodeOf(err) != jobhost.CodeNotFound {
		t.Errorf("a fiber of a worker that is gone: %v", err)
	}
	<-engine.closed
}

// TestRestartAfterReload: a fiber that is started again is of the version of then.
func TestRestartAfterReload(t *testing.T) {
	t.Parallel()
	cfg := fiberConfig(t)
	source := &source{workers: slices.Clone(cfg.Workers)}
	cfg.Reread = source.reread
	h, _ := run(t, cfg)
	k := start(t, h, "a", func(f *jobhost.FiberSpec) {
		f.Restart = jobhost.RestartPolicy{When: jobhost.RestartAlways, Initial: jobhost.Duration(time.Millisecond)}
	})
	k.ask("count", "1")
	changed := source.workers[0]
	changed.Plugin, changed.Entry = guests.Outcomes, "fiber"
	source.set(changed, source.workers[1])
	reload(t, h, "", "echo:unchanged:1 test:changed:2")
	k.say("end")
	k.ask("count", "count")
}

// TestFibersOfTheManifest: a reload begins those that are new, ends those that are
// gone, and does both with those that are other; what else runs goes on.
func TestFibersOfTheManifest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "manifest.toml")
	write := func(fibers string) {
		t.Helper()
		text := "[worker.test]\nplugin = \"fiber.wasm\"\n" + fibers
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "fiber.wasm"), guests.Fiber, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(`
[fibers]
max = 5
[[fiber]]
id = "stays"
worker = "test"
[fiber.labels]
a = "1"
[[fiber]]
id = "changes"
worker = "test"
init = "before"
[[fiber]]
id = "goes"
worker = "test"
`)
	m, err := manifest.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := host.FromManifest(m)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Fibers.Max != 5 || cfg.Fibers.FailWhenFull || cfg.Fibers.InputMessages != 64 || cfg.Fibers.Replay != 64 || len(cfg.Fibers.Start) != 3 {
		t.Errorf("the fibers are %+v", cfg.Fibers)
	}
	base := config(t)
	cfg.Store, cfg.Engine, cfg.CancelGrace = base.Store, base.Engine, base.CancelGrace
	cfg.Reread = host.Rereader(path, m)
	h, _ := run(t, cfg)
	becomes(t, h, "changes:idle goes:idle stays:idle")
	stays, changes := &talk{T: t, host: h, id: "stays"}, &talk{T: t, host: h, id: "changes"}
	stays.ask("count", "1")
	changes.ask("init", "before")
	start(t, h, "by-hand").ask("ping", "ping")

	write(`
[fibers]
max = 6
[[fiber]]
id = "stays"
worker = "test"
labels = { a = "1" }
[[fiber]]
id = "changes"
worker = "test"
init_file = "init"
[[fiber]]
id = "comes"
worker = "test"
`)
	if err := os.WriteFile(filepath.Join(dir, "init"), []byte("after"), 0o600); err != nil {
		t.Fatal(err)
	}
	report := reload(t, h, "", "test:unchanged:1")
	if !slices.Equal(report.NeedsRestart, []string{"fibers.max"}) {
		t.Errorf("what needs a restart: %v", report.NeedsRestart)
	}
	becomes(t, h, "by-hand:idle changes:idle comes:idle goes:killed stays:idle")
	stays.ask("count", "2")
	changes.seq = 0
	changes.ask("init", "after")

	// With a fault nothing changes.
	write("[[fiber]]\nid = \"stays\"\nworker = \"nobody\"\n")
	if _, err := h.Reload(t.Context(), ""); jobhost.CodeOf(err) != jobhost.CodeInvalid {
		t.Errorf("a reload with a fault: %v", err)
	}
	stays.ask("count", "3")
	// Workers alone leave fibers alone.
	if _, err := h.Reload(t.Context(), "test"); err == nil {
		t.Error("a reload of one worker with a fault elsewhere")
	}
	write("")
	reload(t, h, "test", "test:unchanged:1")
	stays.ask("count", "4")
	reload(t, h, "", "test:unchanged:1")
	becomes(t, h, "by-hand:idle changes:killed comes:killed goes:killed stays:killed")
}

// TestReloadsWithFibers: starts and reloads at the same time neither lose a fiber nor
// leave a plugin open.
func TestReloadsWithFibers(t *testing.T) {
	t.Parallel()
	cfg := fiberConfig(t)
	source := &source{workers: slices.Clone(cfg.Workers)}
	cfg.Reread = source.reread
	h, stop := run(t, cfg)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for range 20 {
				spec := jobhost.FiberSpec{ID: string(rune('a' + i)), Worker: "test", Entry: ""}
				if _, err := h.StartFiber(t.Context(), spec); err != nil {
					t.Error(err)
				}
				if err := h.SendFiber(t.Context(), spec.ID, []byte("end"), true); err != nil {
					t.Error(err)
				}
				(&talk{T: t, host: h, id: spec.ID}).over()
			}
		})
	}
	group.Go(func() {
		for i := range 5 {
			w := source.workers[0]
			w.PoolSize = 3 + i
			source.set(w, source.workers[1])
			if _, err := h.Reload(t.Context(), ""); err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestUploadAfterReload: a reload keeps what the host has of payload stores.
func TestUploadAfterReload(t *testing.T) {
	t.Parallel()
	s := setupStored(t, func(c *host.Config) {
		workers := slices.Clone(c.Workers)
		workers[0].PoolSize++
		c.Reread = func(context.Context) (host.Update, error) { return host.Update{Workers: workers}, nil }
	})
	reload(t, s.Host, "", "test:changed:2")
	data := bigText(10_000)
	job := wait(t, s.Host, submit(t, s.Host, jobhost.Spec{PayloadRef: s.upload(t, data)}))
	if job.State != jobhost.Succeeded || !bytes.Equal(s.result(t, job.ID), data) {
		t.Errorf("the job is %+v", job)
	}
}
