package host_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/runtime"
)

// loader is an engine that tells where it has loaded the plugins of workers.
type loader struct {
	*placed

	mu    sync.Mutex // protects the rest
	loads map[string][]runtime.Placement
	// refuses are errors of processes, by worker.
	refuses map[string]error
	// before is called before a plugin is loaded or makes a sandbox in the process of the host; may be nil.
	before func(what string)
}

func newLoader() *loader {
	return &loader{placed: &placed{}, loads: map[string][]runtime.Placement{}, refuses: map[string]error{}}
}

// Load implements [runtime.Engine].
func (l *loader) Load(ctx context.Context, src runtime.Source) (runtime.Plugin, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	place := runtime.SandboxInline
	if src.Sandbox == runtime.SandboxProcess {
		place = src.Sandbox
		if err := l.refuses[src.Worker]; err != nil {
			l.loads[src.Worker] = append(l.loads[src.Worker], place)
			return nil, err
		}
	} else if l.before != nil {
		l.before("load")
	}
	l.loads[src.Worker] = append(l.loads[src.Worker], place)
	p, err := l.placed.Load(ctx, src)
	if err != nil || place == runtime.SandboxProcess || l.before == nil {
		return p, err
	}
	return &beforePlugin{Plugin: p, before: l.before}, nil
}

type beforePlugin struct {
	runtime.Plugin
	before func(what string)
}

func (p *beforePlugin) Instantiate(ctx context.Context) (runtime.Instance, error) {
	p.before("start")
	return p.Plugin.Instantiate(ctx)
}

// loaded returns where a worker was loaded since the last call.
func (l *loader) loaded(worker string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var places []string
	for _, p := range l.loads[worker] {
		places = append(places, string(p))
	}
	delete(l.loads, worker)
	return strings.Join(places, " ")
}

func newLoadSite(t *testing.T) (*crashSite, *loader) {
	t.Helper()
	s, engine := newCrashSite(t), newLoader()
	other := s.cfg.Workers[0]
	other.Name, other.Plugin = "other", append([]byte("other"), other.Plugin...)
	s.cfg.Workers = append(s.cfg.Workers, other)
	s.engine, s.cfg.Engine = engine.placed, engine
	return s, engine
}

const diedLoading = "the host died while it loaded this plugin"

// A plugin whose load ended the host runs apart from then on, until its worker is resumed.
func TestLoadThatEndedTheHost(t *testing.T) {
	t.Parallel()
	s, engine := newLoadSite(t)
	s.dieLoading(fatal, "test")
	for start := range 3 {
		h, stop := s.start()
		if test, other := engine.loaded("test"), engine.loaded("other"); test != "process" || other != "inline" {
			t.Errorf("start %d: loaded %s and %s", start, test, other)
		}
		s.runs(h, runtime.SandboxProcess)
		status := s.status(h, "test")
		if status.Sandbox != "process" || !strings.Contains(status.Quarantine, diedLoading) || !strings.Contains(status.Quarantine, "crashes/") || status.Disabled != "" {
			t.Errorf("%+v", status)
		}
		if other := s.status(h, "other"); other.Sandbox != "inline" || other.Quarantine != "" {
			t.Errorf("%+v", other)
		}
		if start == 2 {
			if _, err := h.ResumeWorker(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			s.runs(h, runtime.SandboxInline)
			if status := s.status(h, "test"); status.Quarantine != "" || status.Sandbox != "inline" {
				t.Errorf("after the resume: %+v", status)
			}
		}
		stop()
	}
	engine.loaded("test")
	h, _ := s.start()
	if loaded := engine.loaded("test"); loaded != "inline" {
		t.Errorf("after a resume it is loaded %s", loaded)
	}
	s.forgotten()
	s.runs(h, runtime.SandboxInline)
}

// If a process can't load it either, the worker is held and not tried again. Both
// plugins of which the load was under way are suspects.
func TestLoadThatEndsItsProcessToo(t *testing.T) {
	t.Parallel()
	s, engine := newLoadSite(t)
	engine.refuses["test"] = &jobhost.Error{Code: jobhost.CodeInvalid, Message: "the process has ended"}
	s.dieLoading(fatal, "test", "other")
	var job string
	for start, want := range []string{"process", "", ""} {
		h, stop := s.start()
		if loaded, other := engine.loaded("test"), engine.loaded("other"); loaded != want || other != "process" {
			t.Errorf("start %d: loaded %q and %q", start, loaded, other)
		}
		if start == 0 {
			job = submit(t, h, jobhost.Spec{})
		}
		why, err := h.Why(t.Context(), job)
		if err != nil || why.Code != "disabled" || !strings.Contains(why.Reason, diedLoading) || !strings.Contains(why.Reason, "the process has ended") {
			t.Errorf("%+v, %v", why, err)
		}
		if _, err := h.StartFiber(t.Context(), jobhost.FiberSpec{ID: "f", Worker: "test"}); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
			t.Errorf("a fiber of it starts: %v", err)
		}
		if disabled := s.status(h, "test").Disabled; !strings.Contains(disabled, diedLoading) {
			t.Errorf("disabled: %q", disabled)
		}
		if start == 2 {
			if _, err := h.ResumeWorker(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			if job := wait(t, h, job); job.State != jobhost.Succeeded {
				t.Errorf("%+v", job)
			}
		}
		stop()
	}
}

// Another version is none of the quarantine's business; the same one with other settings is.
func TestReloadInQuarantine(t *testing.T) {
	t.Parallel()
	s, engine := newLoadSite(t)
	s.dieLoading(fatal, "test")
	h, _ := s.start()
	s.reload(h, 3, "")
	s.runs(h, runtime.SandboxProcess)
	s.reload(h, 3, "mended")
	s.runs(h, runtime.SandboxInline)
	s.reload(h, 3, "")
	s.runs(h, runtime.SandboxProcess)
	if loaded := engine.loaded("test"); loaded != "process process inline process" {
		t.Errorf("loaded %s", loaded)
	}
}

// When a host is killed from outside the plugin may be innocent: it runs apart once.
func TestKillDuringLoad(t *testing.T) {
	t.Parallel()
	s, engine := newLoadSite(t)
	s.dieLoading("", "test")
	h, stop := s.start()
	s.runs(h, runtime.SandboxProcess)
	stop()
	s.forgotten()
	_, _ = s.start()
	if loaded := engine.loaded("test"); loaded != "process inline" {
		t.Errorf("loaded %s", loaded)
	}
}

// Where there are no processes the worker is held for as long as that is so.
func TestNoProcessForLoad(t *testing.T) {
	t.Parallel()
	s, engine := newLoadSite(t)
	engine.placed.plain = true
	s.dieLoading(fatal, "test")
	h, stop := s.start()
	if status := s.status(h, "test"); !strings.Contains(status.Disabled, "no sandboxes in processes") || status.Processes != 0 {
		t.Errorf("%+v", status)
	}
	stop()
	h, _ = s.start()
	engine.placed.plain = false
	s.reload(h, 3, "")
	s.runs(h, runtime.SandboxProcess)
}

// What a host leaves that dies as it loads a plugin, or makes its first sandbox: at its
// start, with a task and with a reload. Later sandboxes are not noted.
func TestLoadsAreNoted(t *testing.T) {
	t.Parallel()
	s, engine := newLoadSite(t)
	s.cfg.Workers = s.cfg.Workers[:1]
	var seen []string
	engine.before = func(what string) {
		text, err := os.ReadFile(filepath.Join(s.dir, journal.FileName))
		if err != nil {
			t.Error(err)
			return
		}
		path := filepath.Join(t.TempDir(), "copy")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Error(err)
			return
		}
		j, err := journal.Open(path, func() {})
		if err != nil {
			t.Error(err)
			return
		}
		noted := ""
		for _, left := range j.Previous().Left {
			if left.Load {
				noted = " noted"
				if left.Worker != "test" || left.Place != journal.Inline || left.Job != digest(s.cfg.Workers[0].Plugin) {
					t.Errorf("%+v", left)
				}
			}
		}
		seen = append(seen, what+noted)
		_ = j.Close()
	}
	s.cfg.Workers[0].PoolSize, s.cfg.Workers[0].Isolation = 1, runtime.IsolateFresh
	h, stop := s.start()
	s.runs(h, runtime.SandboxInline)
	if got := strings.Join(seen, ", "); got != "load noted, start noted" {
		t.Errorf("%s", got)
	}
	seen = nil
	s.reload(h, 2, "")
	s.runs(h, runtime.SandboxInline)
	if got := strings.Join(seen, ", "); got != "load noted, start noted, start" {
		t.Errorf("reload: %s", got)
	}
	stop()
	j, _ := s.open()
	if left := j.Previous().Left; len(left) > 0 {
		t.Errorf("left %+v", left)
	}
}
