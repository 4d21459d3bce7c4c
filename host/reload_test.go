package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/host/metrics"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
)

// source is what a host is to run, which tests change while it runs.
type source struct {
	mu      sync.Mutex // protects what follows
	workers []host.Worker
	err     error
}

func (s *source) reread(context.Context) (host.Update, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return host.Update{Workers: slices.Clone(s.workers), NeedsRestart: []string{"host.listen"}}, s.err
}

func (s *source) set(workers ...host.Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers, s.err = workers, nil
}

// reloadable is config with a source of its workers.
func reloadable(t testing.TB) (host.Config, *source) {
	cfg := config(t)
	s := &source{workers: slices.Clone(cfg.Workers)}
	cfg.Reread = s.reread
	return cfg, s
}

// named returns the worker of config by another name.
func named(w host.Worker, name string) host.Worker {
	w.Name = name
	return w
}

func status(t *testing.T, h *hosttest.Host, worker string) jobhost.WorkerStatus {
	t.Helper()
	workers, err := h.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(workers, func(w jobhost.WorkerStatus) bool { return w.Name == worker })
	if i < 0 {
		t.Fatalf("there is no worker %s in %+v", worker, workers)
	}
	return workers[i]
}

// changes formats a report: "name:change:version".
func changes(report jobhost.Reload) string {
	var list []string
	for _, w := range report.Workers {
		list = append(list, fmt.Sprintf("%s:%s:%d", w.Name, w.Change, w.Version))
	}
	return strings.Join(list, " ")
}

func reload(t *testing.T, h *hosttest.Host, worker, want string) jobhost.Reload {
	t.Helper()
	report, err := h.Reload(t.Context(), worker)
	if err != nil {
		t.Fatal(err)
	}
	if got := changes(report); got != want {
		t.Errorf("reload did %q, want %q", got, want)
	}
	return report
}

func scrape(m *metrics.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "GET", "/metrics", nil))
	return w.Body.String()
}

func TestReloadSwapsAWorker(t *testing.T) {
	t.Parallel()
	var log safeBuffer
	cfg, source := reloadable(t)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	h, _ := run(t, cfg)
	before := status(t, h, "test")
	if before.Version != 1 || before.LoadedAt.IsZero() {
		t.Errorf("the first version is %+v", before)
	}
	report := reload(t, h, "", "test:unchanged:1")
	if !slices.Equal(report.NeedsRestart, []string{"host.listen"}) {
		t.Errorf("what needs a restart: %v", report.NeedsRestart)
	}
	running := submit(t, h, jobhost.Spec{Entry: "spin", Timeout: 500 * time.Millisecond, MaxAttempts: 1})
	begun(t, h, running)

	w := cfg.Workers[0]
	w.Plugin, w.Entry, w.PoolSize, w.QueueCapacity = guests.Echo, "", 5, 7
	source.set(w)
	reload(t, h, "test", "test:changed:2")
	after := status(t, h, "test")
	if after.Version != 2 || after.Slots != 5 || after.QueueCapacity != 7 || after.SHA256 == before.SHA256 || !after.LoadedAt.After(before.LoadedAt) {
		t.Errorf("after the reload the worker is %+v", after)
	}
	// The old version has an entry that the new one lacks.
	if job := wait(t, h, running); job.Failures[0].Code != jobhost.FailTimeout {
		t.Errorf("the running task ended with %+v", job.Failures)
	}
	if job := wait(t, h, submit(t, h, jobhost.Spec{Entry: "empty"})); job.Failures[0].Code != jobhost.FailNoEntry {
		t.Errorf("a new task ended with %+v", job.Failures)
	}
	want := `msg="worker swapped" worker=test before=` + before.SHA256[:12] + " sha256=" + after.SHA256[:12] + " load=2"
	if !strings.Contains(log.String(), want) {
		t.Errorf("the log has no %s:\n%s", want, log.String())
	}
}

// TestReloadFeatures: what a worker may use is part of its version.
func TestReloadFeatures(t *testing.T) {
	t.Parallel()
	cfg, source := reloadable(t)
	h, _ := run(t, cfg)
	w := cfg.Workers[0]
	w.Features = runtime.Features()
	source.set(w)
	reload(t, h, "", "test:changed:2")
	w.Plugin, w.Entry = guests.SIMD, ""
	source.set(w)
	reload(t, h, "", "test:changed:3")
	if result := resultOf(t, h, submit(t, h, jobhost.Spec{Payload: []byte("capitals")})); result != "CAPITALS" {
		t.Errorf("the result is %q", result)
	}
	w.Features = nil
	source.set(w)
	if _, err := h.Reload(t.Context(), ""); jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(jobhost.HintOf(err), `features = ["simd"]`) {
		t.Errorf("without the feature: %v", err)
	}
}

// TestReloadMindsMemory: a version whose tasks could never run is refused, and
// one that needs more memory than its predecessor gets it.
func TestReloadMindsMemory(t *testing.T) {
	t.Parallel()
	cfg, source := reloadable(t)
	cfg.MaxMemory = (96 + 2*24) << 20 // each sandbox has a stack of 24 MiB besides
	h, _ := run(t, cfg)
	w := cfg.Workers[0]
	w.Limits.MemoryBytes = 121 << 20
	source.set(w)
	if _, err := h.Reload(t.Context(), ""); jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), "raise max_memory") {
		t.Errorf("reload: %v", err)
	}
	w.Limits.MemoryBytes = 120 << 20
	keeps := named(w, "keeps")
	keeps.Isolation = runtime.IsolateInstance
	keeps.Limits.MemoryBytes, keeps.PoolSize = 32<<20, 1
	source.set(w, keeps)
	if _, err := h.Reload(t.Context(), ""); jobhost.CodeOf(err) != jobhost.CodeInvalid {
		t.Errorf("reload: %v", err)
	}
	w.Limits.MemoryBytes = 64 << 20
	source.set(w, keeps)
	reload(t, h, "", "keeps:added:1 test:unchanged:1")
	for _, worker := range []string{"test", "keeps"} {
		if job := wait(t, h, submit(t, h, jobhost.Spec{Worker: worker})); job.State != jobhost.Succeeded {
			t.Errorf("a job of %s is %v", worker, job.State)
		}
	}
	source.set(keeps)
	reload(t, h, "", "keeps:unchanged:1 test:removed:0")
	w.Limits.MemoryBytes = 120 << 20
	source.set(w)
	reload(t, h, "", "keeps:removed:0 test:added:2")
	if job := wait(t, h, submit(t, h, jobhost.Spec{})); job.State != jobhost.Succeeded {
		t.Errorf("a job is %v", job.State)
	}
}

// TestKernelCounts: that a plugin is one of Extism, which has the memory of its
// kernel besides its own, may be known only when it is loaded.
func TestKernelCounts(t *testing.T) {
	t.Parallel()
	cfg, source := reloadable(t)
	cfg.MaxMemory = (2*64 + 24) << 20
	h, _ := run(t, cfg)
	plugin := named(cfg.Workers[0], "plugin")
	plugin.Plugin, plugin.Entry, plugin.Limits.MemoryBytes = guests.Extism, "echo", 65<<20
	source.set(plugin)
	if _, err := h.Reload(t.Context(), ""); jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), "worker plugin: a sandbox may take") {
		t.Errorf("reload: %v", err)
	}
	plugin.Limits.MemoryBytes = 64 << 20
	source.set(plugin)
	reload(t, h, "", "plugin:added:1 test:removed:0")
	reload(t, h, "", "plugin:unchanged:1")
	receipt, err := h.Submit(t.Context(), jobhost.Spec{Worker: "plugin"})
	if err != nil {
		t.Fatal(err)
	}
	if job := wait(t, h, receipt.ID); job.State != jobhost.Succeeded {
		t.Errorf("a job is %v", job.State)
	}

	cfg = config(t)
	cfg.MaxMemory, cfg.Workers = (2*64+23)<<20, []host.Worker{plugin}
	later, err := host.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := later.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "worker plugin: a sandbox may take") {
		t.Errorf("start: %v", err)
	}
}

func TestBrokenVersionChangesNothing(t *testing.T) {
	t.Parallel()
	cfg, source := reloadable(t)
	h, _ := run(t, cfg)
	good := cfg.Workers[0]
	before := status(t, h, "test")
	tests := []struct {
		name   string
		change func(*host.Worker)
		want   string
	}{
		{"no module", func(w *host.Worker) { w.Plugin = []byte("#!/bin/sh\n") }, "outcomes.wasm is"},
		{"half a module", func(w *host.Worker) { w.Plugin = w.Plugin[:len(w.Plugin)/2] }, "not a valid WebAssembly module"},
		{"vectors that it may not use", func(w *host.Worker) { w.Plugin, w.Entry = guests.SIMD, "" }, "uses vector instructions (SIMD), in function 1"},
		{"no such entry", func(w *host.Worker) { w.Entry = "nothing" }, "nothing"},
		{"initialisation traps", func(w *host.Worker) { w.Plugin, w.Entry = guests.InitTrap, "" }, "the new version of worker test can't make a sandbox"},
		{"no slots", func(w *host.Worker) { w.PoolSize = 0 }, "pool size 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			broken := good
			tt.change(&broken)
			other := named(good, "other") // it is fine, and must not be added either
			source.set(broken, other)
			_, err := h.Reload(t.Context(), "")
			if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("reload: %v, want %q", err, tt.want)
			}
			if now := status(t, h, "test"); now.Version != 1 || now.SHA256 != before.SHA256 {
				t.Errorf("the worker is %+v", now)
			}
			if workers, err := h.Workers(t.Context()); err != nil || len(workers) != 1 {
				t.Errorf("%d workers, %v", len(workers), err)
			}
			if job := wait(t, h, submit(t, h, jobhost.Spec{})); job.State != jobhost.Succeeded {
				t.Errorf("a job is %v", job.State)
			}
		})
	}
}

func TestReloadAddsAndRemovesWorkers(t *testing.T) {
	t.Parallel()
	cfg, source := reloadable(t)
	var mu sync.Mutex
	var kinds []string
	cfg.Workers[0].PoolSize = 1 // so that a spinning task keeps others waiting
	cfg.OnEvent = func(e jobhost.Event) {
		if e.Job == "" {
			mu.Lock()
			defer mu.Unlock()
			kinds = append(kinds, fmt.Sprintf("%s %s", e.Worker, e.Kind))
		}
	}
	h, _ := run(t, cfg)
	test := cfg.Workers[0]
	source.set(test, named(test, "more"))
	reload(t, h, "", "more:added:1 test:unchanged:1")

	running := submit(t, h, jobhost.Spec{Entry: "spin"})
	begun(t, h, running)
	waiting := submit(t, h, jobhost.Spec{})
	scheduled := submit(t, h, jobhost.Spec{Delay: time.Hour})
	source.set(named(test, "more"))
	reload(t, h, "test", "test:removed:0")
	for _, id := range []string{waiting, scheduled} {
		if job, err := h.Job(t.Context(), id); err != nil || job.State != jobhost.Held {
			t.Errorf("a job of a removed worker is %v, %v", job.State, err)
		}
	}
	if why, err := h.Why(t.Context(), scheduled); err != nil || why.Code != "no_worker" {
		t.Errorf("why: %+v, %v", why, err)
	}
	if _, err := h.Submit(t.Context(), jobhost.Spec{Worker: "test"}); jobhost.CodeOf(err) != jobhost.CodeNotFound {
		t.Errorf("a submit to a removed worker is answered %v", err)
	}
	if job, err := h.Job(t.Context(), running); err != nil || job.State != jobhost.Running {
		t.Errorf("the running task of a removed worker is %v, %v", job.State, err)
	}
	if _, err := h.Cancel(t.Context(), running); err != nil {
		t.Error(err)
	}
	if _, err := h.Reload(t.Context(), "test"); jobhost.CodeOf(err) != jobhost.CodeNotFound {
		t.Errorf("reload of what is nowhere: %v", err)
	}

	source.set(test, named(test, "more"))
	reload(t, h, "", "more:unchanged:1 test:added:2")
	if job := wait(t, h, waiting); job.State != jobhost.Succeeded {
		t.Errorf("the held job is %v", job.State)
	}
	if job, err := h.Job(t.Context(), scheduled); err != nil || job.State != jobhost.Scheduled {
		t.Errorf("the scheduled job is %v, %v", job.State, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"more loaded", "test unloaded", "test loaded"}; !slices.Equal(kinds, want) {
		t.Errorf("events %v, want %v", kinds, want)
	}
}

func TestReloadIsCounted(t *testing.T) {
	t.Parallel()
	cfg, source := reloadable(t)
	cfg.Metrics = metrics.New()
	h, _ := run(t, cfg)
	w := cfg.Workers[0]
	reload(t, h, "", "test:unchanged:1")
	w.PoolSize = 1
	source.set(w)
	reload(t, h, "", "test:changed:2")
	w.Plugin = nil
	source.set(w)
	if _, err := h.Reload(t.Context(), ""); err == nil {
		t.Error("a worker without plugin was loaded")
	}
	source.mu.Lock()
	source.err = errors.New("manifest.toml:1:1: it is broken")
	source.mu.Unlock()
	if _, err := h.Reload(t.Context(), "no-such-worker"); err == nil {
		t.Error("a broken manifest was loaded")
	}
	text := scrape(cfg.Metrics)
	for _, want := range []string{
		`jobhost_worker_reloads_total{outcome="unchanged",worker="test"} 1`,
		`jobhost_worker_reloads_total{outcome="changed",worker="test"} 1`,
		`jobhost_worker_reloads_total{outcome="failed",worker="test"} 1`,
		`jobhost_worker_reloads_total{outcome="failed",worker=""} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
}

func TestHostWithoutASource(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Reread = nil
	h, _ := run(t, cfg)
	if _, err := h.Reload(t.Context(), ""); jobhost.CodeOf(err) != jobhost.CodeInvalid {
		t.Errorf("reload: %v", err)
	}
	w := cfg.Workers[0]
	report, err := h.SetWorkers(t.Context(), []host.Worker{named(w, "other")})
	if got := changes(report); err != nil || got != "other:added:1 test:removed:0" {
		t.Errorf("set workers did %q, %v", got, err)
	}
	if _, err := h.SetWorkers(t.Context(), nil); jobhost.CodeOf(err) != jobhost.CodeInvalid {
		t.Errorf("a host without workers: %v", err)
	}
}

// TestReloadUnderLoad swaps two versions back and forth while jobs run: all of
// them succeed, and each on one of the two.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	const jobs, reloads = 200, 10
	cfg, source := reloadable(t)
	h, _ := run(t, cfg)
	versions := []host.Worker{cfg.Workers[0], cfg.Workers[0]}
	versions[1].Plugin, versions[1].Entry, versions[1].PoolSize = guests.Echo, "", 3
	var group sync.WaitGroup
	group.Go(func() {
		for i := range reloads {
			source.set(versions[(i+1)%2])
			if _, err := h.Reload(t.Context(), ""); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range jobs {
		id := fmt.Sprintf("job-%d", i)
		submit(t, h, jobhost.Spec{ID: id, Payload: []byte(id), MaxAttempts: 1})
		if i%20 == 0 {
			wait(t, h, id) // so that slots are idle at times
		}
	}
	group.Wait()
	for i := range jobs {
		id := fmt.Sprintf("job-%d", i)
		wait(t, h, id)
		if result, err := h.Result(t.Context(), id, 0); err != nil || string(result.Data) != id {
			t.Errorf("%s returned %q, %v", id, result.Data, err)
		}
	}
	if v := status(t, h, "test").Version; v != reloads+1 {
		t.Errorf("the worker is at version %d", v)
	}
}

// safeBuffer is a buffer for many goroutines.
type safeBuffer struct {
	mu  sync.Mutex // protects buf
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
