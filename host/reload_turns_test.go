package host_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/runtime"
)

// slowEngine loads when it is let.
type slowEngine struct {
	runtime.Engine
	loading chan string   // told of each load
	proceed chan struct{} // one value for each
}

func (e *slowEngine) Load(ctx context.Context, src runtime.Source) (runtime.Plugin, error) {
	e.loading <- src.Worker
	<-e.proceed
	return e.Engine.Load(ctx, src)
}

// slow returns a running host whose reloads wait in their load.
func slow(t *testing.T) (*hosttest.Host, *slowEngine, *source, func() error) {
	t.Helper()
	cfg, source := reloadable(t)
	engine := &slowEngine{Engine: cfg.Engine, loading: make(chan string, 8), proceed: make(chan struct{}, 8)}
	cfg.Engine = engine
	engine.proceed <- struct{}{}
	h, stop := run(t, cfg)
	<-engine.loading
	w := cfg.Workers[0]
	w.PoolSize = 3
	source.set(w)
	return h, engine, source, stop
}

func TestReloadsTakeTurns(t *testing.T) {
	t.Parallel()
	h, engine, _, _ := slow(t)
	first, second := make(chan string, 1), make(chan string, 1)
	reload := func(answer chan string) {
		report, err := h.Reload(context.Background(), "")
		answer <- fmt.Sprint(changes(report), err)
	}
	go reload(first)
	<-engine.loading
	go reload(second)
	hasty, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := h.Reload(hasty, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a reload that won't wait: %v", err)
	}
	// Jobs run while a plugin is compiled.
	if job := wait(t, h, submit(t, h, jobhost.Spec{})); job.State != jobhost.Succeeded {
		t.Errorf("job is %v", job.State)
	}
	engine.proceed <- struct{}{}
	if got := <-first; got != "test:changed:2<nil>" {
		t.Errorf("the first reload: %s", got)
	}
	if got := <-second; got != "test:unchanged:2<nil>" {
		t.Errorf("the second reload: %s", got)
	}
}

func TestStopDuringAReload(t *testing.T) {
	t.Parallel()
	h, engine, _, stop := slow(t)
	answer := make(chan error, 2)
	reload := func() {
		_, err := h.Reload(context.Background(), "")
		answer <- err
	}
	go reload()
	<-engine.loading
	go reload() // this one waits for its turn
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	if err := <-answer; jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("the reload that waited: %v", err)
	}
	engine.proceed <- struct{}{}
	if err := <-answer; jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("the reload under way: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, err := h.Reload(t.Context(), ""); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("a reload after the end: %v", err)
	}
}

func TestReloadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	h, engine, _, _ := slow(t)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := h.Reload(ctx, "")
		answer <- err
	}()
	<-engine.loading
	cancel()
	engine.proceed <- struct{}{}
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("reload: %v", err)
	}
	if now := status(t, h, "test"); now.Version != 1 || now.Slots != 2 {
		t.Errorf("the worker is %+v", now)
	}
}
