package wasm_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// polling loads a guest into an engine that stops guests by contexts.
func polling(guest []byte) func(*testing.T, runtime.Source) runtime.Plugin {
	return func(t *testing.T, src runtime.Source) runtime.Plugin {
		var log bytes.Buffer
		e, err := wasm.NewPolling(wasm.Config{CacheDir: cacheDir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "run slower") {
			t.Errorf("log: %q", log.String())
		}
		t.Cleanup(func() {
			if err := e.Close(context.Background()); err != nil {
				t.Errorf("close the engine: %v", err)
			}
		})
		src.Worker, src.Bytes = "suite", guest
		p, err := e.Load(t.Context(), src)
		if err != nil {
			t.Fatalf("load: %v", err)
		}
		return p
	}
}

// TestPollingSuite runs the suite where the meter stops nothing.
func TestPollingSuite(t *testing.T) {
	t.Parallel()
	runtimetest.Run(t, runtimetest.Subject{Open: polling(guests.Outcomes), Lacks: []string{"sleep", "ok"}})
}

// TestPollingStops: contexts alone stop a guest there.
func TestPollingStops(t *testing.T) {
	t.Parallel()
	p := polling(guests.Outcomes)(t, runtime.Source{})
	i := runtimetest.Instance(t, p)
	i.(*wasm.Instance).DeafMeter()
	at := runtimetest.Attempt("spin", "")
	at.Deadline = time.Now().Add(50 * time.Millisecond)
	if f := i.Run(t.Context(), at).Outcome.Failure; f == nil || f.Code != jobhost.FailTimeout {
		t.Errorf("at its deadline: %+v", f)
	}
	i = runtimetest.Instance(t, p)
	i.(*wasm.Instance).DeafMeter()
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(hostcall.ErrCancelled) })
	if got := i.Run(ctx, runtimetest.Attempt("spin", "")); got.Outcome.Kind != jobhost.OutcomeCancelled {
		t.Errorf("cancelled: %+v", got)
	}
}
