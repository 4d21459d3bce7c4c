package host_test

import (
	"context"
	"errors"
	"net/http"
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
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/runtime"
)

var errDisk = errors.New("the disk is on fire")

// brokenStore is a store that fails when it is told to, and stays so.
type brokenStore struct {
	record.Store
	why    error
	failed chan struct{}
	fail   func()
}

func newBrokenStore(store record.Store, why error) *brokenStore {
	s := &brokenStore{Store: store, why: why, failed: make(chan struct{})}
	s.fail = sync.OnceFunc(func() { close(s.failed) })
	return s
}

func (s *brokenStore) Failed() <-chan struct{} { return s.failed }

func (s *brokenStore) Err() error {
	select {
	case <-s.failed:
		return s.why
	default:
		return nil
	}
}

func (s *brokenStore) Commit(ops []record.Op, done func([]record.OpResult, error)) {
	if err := s.Err(); err != nil {
		done(nil, err)
		return
	}
	s.Store.Commit(ops, done)
}

// await waits until the host is in a state.
func await(t *testing.T, h *hosttest.Host, state host.State) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for h.State() != state {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("the host is %v", h.State())
		}
	}
}

// Once the store has failed, nothing that running tasks come to can be kept: a
// host that let them finish would only be away for longer.
func TestFailedStoreStopsTheHostAtOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		draining bool // when the store fails
		why      error
		told     string
	}{
		{"while it runs", false, errDisk, "the store has failed: the disk is on fire"},
		{"while it drains", true, errDisk, "the store has failed: the disk is on fire"},
		{"term over while it runs", false, record.ErrTermOver, "the term is over: another host leads, or may lead"},
		{"term over while it drains", true, record.ErrTermOver, "the term is over: another host leads, or may lead"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			store := newBrokenStore(cfg.Store, tt.why)
			cfg.Store = store
			// The test would take as long as these if the host waited.
			cfg.ShutdownTimeout = time.Hour
			h, stop := run(t, cfg)
			id := submit(t, h, jobhost.Spec{Entry: "spin", Timeout: time.Hour})
			begun(t, h, id)
			stopped := make(chan error, 1)
			if tt.draining {
				go func() { stopped <- stop() }()
				await(t, h, host.Draining)
				store.fail()
			} else {
				store.fail()
				await(t, h, host.Stopped) // by itself
				stopped <- stop()
			}
			if err := <-stopped; !errors.Is(err, tt.why) || err.Error() != tt.told {
				t.Errorf("run: %v", err)
			}
		})
	}
}

// A host whose term is over while it starts doesn't load the rest.
func TestFailedStoreEndsTheStart(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	store := newBrokenStore(cfg.Store, record.ErrTermOver)
	cfg.Store, cfg.Engine = store, &endless{begun: store.fail}
	h, err := host.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Run(t.Context()); !errors.Is(err, record.ErrTermOver) || err.Error() != record.ErrTermOver.Error() {
		t.Errorf("run: %v", err)
	}
}

// endless is an engine that loads nothing before its context has ended.
type endless struct {
	placed
	begun func()
}

func (e *endless) Load(ctx context.Context, _ runtime.Source) (runtime.Plugin, error) {
	e.begun()
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestSlowReadersAreCounted(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Metrics = metrics.New()
	cfg.Workers[0].QueueCapacity = 10_000
	h, _ := run(t, cfg)
	wait(t, h, submit(t, h, jobhost.Spec{}))
	var ended error
	last := "" // of many more jobs than a reader may lag behind in events
	for event, err := range h.Events(t.Context(), jobhost.EventQuery{After: 1}) {
		ended = err
		switch {
		case last == "":
			answers, err := h.SubmitBatch(t.Context(), slices.Repeat([]jobhost.Spec{{Worker: "test"}}, 1200))
			if err != nil {
				t.Fatal(err)
			}
			last = answers[len(answers)-1].Receipt.ID
			wait(t, h, last)
		case event.Job == last && event.Kind == jobhost.EventEnded:
			t.Fatal("a reader that was away missed nothing")
		}
	}
	if jobhost.CodeOf(ended) != jobhost.CodeExhausted {
		t.Errorf("the events ended with %v", ended)
	}
	const want = `jobhost_limit_hits_total{limit="reader"} 1`
	answer := httptest.NewRecorder()
	cfg.Metrics.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(answer.Body.String(), want+"\n") {
		t.Errorf("metrics do not say %s", want)
	}
}
