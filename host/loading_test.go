package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/runtime"
)

// gated is an engine that loads a plugin when it is let to.
type gated struct {
	placed
	begun, gate chan struct{}
}

func (e *gated) Load(ctx context.Context, src runtime.Source) (runtime.Plugin, error) {
	e.begun <- struct{}{}
	<-e.gate
	return e.placed.Load(ctx, src)
}

// A host that is starting says what it is waiting for.
func TestStartingHostNamesWhatItLoads(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	engine := &gated{begun: make(chan struct{}), gate: make(chan struct{})}
	cfg.Engine = engine
	h, err := host.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	<-engine.begun
	_, err = h.Server()
	e, _ := errors.AsType[*jobhost.Error](err)
	if e == nil || e.Code != jobhost.CodeUnavailable || e.Field != jobhost.FieldStart || e.Hint == "" ||
		!strings.HasPrefix(e.Message, "the host is starting: 0 of 1 workers loaded, compiling test (") {
		t.Errorf("during the start: %+v", err)
	}
	if err := h.Admits(); err == nil || err.Error() != "the host is starting: 0 of 1 workers loaded" {
		t.Errorf("a probe, which needs no token: %v", err)
	}
	close(engine.gate)
	if _, err := h.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := h.Ready(); err == nil || strings.Contains(err.Error(), "loaded") {
		t.Errorf("after the end: %v", err)
	}
}
