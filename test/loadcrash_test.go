package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// dyingLoads makes it a site whose worker evil kills the host at the moment that "dies" says.
func (s *site) dyingLoads(dies string) *site {
	s.replace("[worker.spin]", fmt.Sprintf("[worker.evil.config]\ndies = %q\n\n[worker.spin]", dies))
	return s.dying()
}

// dies waits until a host that kills itself has done so.
func (p *process) dies() {
	p.t.Helper()
	select {
	case <-p.read:
		_ = p.cmd.Wait()
	case <-time.After(time.Minute):
		p.t.Fatalf("the host lives:\n%s", p.logText())
	}
	if !strings.Contains(p.logText(), "fatal error: stack overflow") {
		p.t.Fatalf("the host ended otherwise:\n%s", p.logText())
	}
}

// starts runs some hosts one after the other, of which every other one is killed, and
// checks each.
func (s *site) starts(check func(start int, p *process)) {
	s.t.Helper()
	for start := range often(4, 10) {
		p := s.start()
		p.serves()
		check(start, p)
		if start%2 == 0 {
			p.kill()
		} else if code := p.stop(); code != 0 {
			s.t.Errorf("start %d ended with %d:\n%s", start, code, p.logText())
		}
	}
}

const diedLoading = "the host died while it loaded this plugin"

// A plugin that kills the host while it is loaded, and then a process, holds its worker.
func TestLoadThatEndsTheHost(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t, 2).dyingLoads("load")
	s.begin("run").dies()
	var waiting string
	s.starts(func(start int, p *process) {
		if start == 0 {
			waiting = p.submit(jobhost.Spec{Worker: "evil"})
		}
		awaitState(t, p, waiting, jobhost.Held)
		why, err := p.Why(t.Context(), waiting)
		if err != nil || why.Code != "disabled" || !strings.Contains(why.Reason, diedLoading) || !strings.Contains(why.Ends, "worker resume evil") {
			t.Errorf("start %d: %+v, %v", start, why, err)
		}
		if disabled := p.worker("evil").Disabled; !strings.Contains(disabled, diedLoading) {
			t.Errorf("start %d: %q", start, disabled)
		}
	})
	if kept, err := filepath.Glob(filepath.Join(s.dir, "data", "crashes", "2*.txt")); err != nil || len(kept) != 1 {
		t.Errorf("%v, %v", kept, err)
	}

	// A resume loads it into the host once more.
	p := s.start()
	_, _ = p.ResumeWorker(t.Context(), "evil")
	p.dies()
	p = s.start()
	p.serves()
	awaitState(t, p, waiting, jobhost.Held)
	s.write("mended", nil)
	if _, err := p.ResumeWorker(t.Context(), "evil"); err != nil {
		t.Fatal(err)
	}
	awaitState(t, p, waiting, jobhost.Succeeded)
	p.kill()
	p = s.start()
	if status := p.worker("evil"); status.Disabled != "" || status.Quarantine != "" || status.Sandbox != "inline" {
		t.Errorf("%+v", status)
	}
}

// A plugin that only kills the host runs in a process, and does its jobs there.
func TestLoadThatEndsTheHostAlone(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t, 2).dyingLoads("load-host")
	s.begin("run").dies()
	s.starts(func(start int, p *process) {
		awaitState(t, p, p.submit(jobhost.Spec{Worker: "evil"}), jobhost.Succeeded)
		if status := p.worker("evil"); status.Sandbox != "process" || !strings.Contains(status.Quarantine, diedLoading) || status.Disabled != "" {
			t.Errorf("start %d: %+v", start, status)
		}
	})
}

// A plugin that kills the host when it initialises does so once, and after that only processes.
func TestStartThatEndsTheHost(t *testing.T) {
	t.Parallel()
	s := newCrashSite(t, 2).dyingLoads("start")
	p := s.start()
	var specs []jobhost.Spec
	for i := range 6 {
		specs = append(specs, jobhost.Spec{ID: fmt.Sprint("evil-", i), Worker: "evil"})
	}
	_, _ = p.SubmitBatch(t.Context(), specs)
	p.dies()
	s.starts(func(start int, p *process) {
		if start == 0 { // a task that was in progress kills its process too
			p.awaitLog(`msg="worker is held" worker=evil`)
		}
		if status := p.worker("evil"); status.Sandbox != "process" || !strings.Contains(status.Quarantine, diedLoading) {
			t.Errorf("start %d: %+v", start, status)
		}
	})
}

// A reload to a version that kills the host: the next start has the same manifest.
func TestReloadThatEndsTheHost(t *testing.T) {
	t.Parallel()
	for _, dies := range []string{"load", "start"} {
		t.Run(dies, func(t *testing.T) {
			t.Parallel()
			s := newCrashSite(t, 2).dying()
			p := s.start()
			p.serves()
			s.dyingLoads(dies)
			_, _ = p.Reload(t.Context(), "")
			p.dies()
			for range 3 {
				p = s.start()
				p.serves()
				if status := p.worker("evil"); !strings.Contains(status.Quarantine, diedLoading) {
					t.Errorf("%+v", status)
				}
				p.kill()
			}
		})
	}
}
