package host_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/builtin"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// fragile is an engine of plugins that can lose what they need.
type fragile struct{ loaded chan *fragilePlugin }

// Load implements [runtime.Engine].
func (f *fragile) Load(context.Context, runtime.Source) (runtime.Plugin, error) {
	p := &fragilePlugin{}
	p.Plugin = builtin.New(func(_ context.Context, at *hostcall.Attempt) jobhost.Outcome {
		if p.down.Load() {
			return jobhost.Outcome{Kind: jobhost.OutcomeReturned}
		}
		return jobhost.Outcome{Kind: jobhost.OutcomeSucceeded, Output: at.Input}
	}, nil)
	f.loaded <- p
	return p, nil
}

// Close implements [runtime.Engine].
func (f *fragile) Close(context.Context) error { return nil }

type fragilePlugin struct {
	runtime.Plugin

	down atomic.Bool
	told atomic.Pointer[func(string)]
}

// OnDisabled implements [runtime.Fallible].
func (p *fragilePlugin) OnDisabled(told func(string)) {
	if told == nil {
		p.told.Store(nil)
		return
	}
	p.told.Store(&told)
}

// Enable implements [runtime.Fallible].
func (p *fragilePlugin) Enable() { p.set("") }

func (p *fragilePlugin) set(reason string) {
	p.down.Store(reason != "")
	if told := p.told.Load(); told != nil {
		(*told)(reason)
	}
}

// TestDisabledWorker holds the tasks of a worker whose plugin can't run anything, and says why, until somebody
// resumes it or it is another version.
func TestDisabledWorker(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	engine := &fragile{loaded: make(chan *fragilePlugin, 2)}
	cfg.Engine = engine
	h, _ := run(t, cfg)
	p := <-engine.loaded
	held := func(id string) {
		t.Helper()
		why, err := h.Why(t.Context(), id)
		if err != nil || why.State != jobhost.Held || why.Code != "disabled" || !strings.Contains(why.Reason, "it crashed") {
			t.Errorf("%+v, %v", why, err)
		}
		workers, err := h.Workers(t.Context())
		if err != nil || workers[0].Disabled != "it crashed" {
			t.Errorf("%+v, %v", workers, err)
		}
	}
	p.set("it crashed")
	first := submit(t, h, jobhost.Spec{Payload: []byte("first")})
	held(first)
	if _, err := h.ResumeWorker(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if job := wait(t, h, first); job.State != jobhost.Succeeded || job.Tasks[0].Attempt != 1 {
		t.Errorf("resumed: %+v", job)
	}

	p.set("it crashed")
	second := submit(t, h, jobhost.Spec{Payload: []byte("second")})
	held(second)
	workers := cfg.Workers
	workers[0].PoolSize, workers[0].Entry = 3, "ok" // another version
	if _, err := h.SetWorkers(t.Context(), workers); err != nil {
		t.Fatal(err)
	}
	if job := wait(t, h, second); job.State != jobhost.Succeeded {
		t.Errorf("reloaded: %+v", job)
	}
	p.set("it crashed") // the old one, of which nobody wants to hear
	if job := wait(t, h, submit(t, h, jobhost.Spec{})); job.State != jobhost.Succeeded {
		t.Errorf("after the old version was told of: %+v", job)
	}
}
