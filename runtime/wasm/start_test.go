package wasm_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

func TestStart(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	i := runtimetest.Instance(t, load(t, e, guests.Init, runtime.Limits{}))
	for range 2 {
		if got := i.Run(t.Context(), runtimetest.Attempt("", "")).Outcome; string(got.Output) != "1" {
			t.Errorf("initialised %s times: %+v", got.Output, got.Failure)
		}
	}
}

// TestStartChangesTable: what a guest changes while it initialises besides
// memory and globals is there for all jobs, in each isolation.
func TestStartChangesTable(t *testing.T) {
	t.Parallel()
	for _, isolation := range runtime.Isolations() {
		p := opener(guests.InitTable)(t, runtime.Source{Isolation: isolation})
		sandbox := runtime.NewSandbox(p, nil)
		for range 3 {
			if got := sandbox.Run(t.Context(), runtimetest.Attempt("", "")); string(got.Output) != "2" {
				t.Errorf("%s: %q, %+v", isolation, got.Output, got.Failure)
			}
		}
		if err := sandbox.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestStartTooLate: a guest that had no time to initialise is no success.
func TestStartTooLate(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for n := range 50 {
		i, err := load(t, e, guests.Init, runtime.Limits{StartTime: time.Duration(n*100 + 1)}).Instantiate(t.Context())
		if err != nil {
			continue
		}
		if got := i.Run(t.Context(), runtimetest.Attempt("", "")).Outcome; string(got.Output) != "1" {
			t.Errorf("initialised %q times: %+v", got.Output, got.Failure)
		}
		_ = i.Close(t.Context())
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	start := func(module []byte, limits runtime.Limits) error {
		i, err := load(t, e, module, limits).Instantiate(t.Context())
		if err == nil {
			_ = i.Close(t.Context())
		}
		return err
	}
	err := start(guests.InitSpin, runtime.Limits{StartTime: 50 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "not ready within 50ms") || !strings.Contains(jobhost.HintOf(err), "_initialize") {
		t.Errorf("spinning: %v", err)
	}
	err = start(guests.InitTrap, runtime.Limits{})
	if err == nil || err.Error() != "the guest failed to start: the guest trapped: unreachable" || jobhost.HintOf(err) != `its log: error no good\x1b[2J` {
		t.Errorf("trapping: %v; %s", err, jobhost.HintOf(err))
	}
}

// TestMissingMount: a folder that isn't there is named as the guest knows it, and
// where it should be stays with the operator.
func TestMissingMount(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	p := opener(guests.Noop)(t, runtime.Source{System: runtime.System{Mounts: []runtime.Mount{{Host: missing, Guest: "/data"}}}})
	got := runtime.NewSandbox(p, nil).Run(t.Context(), runtimetest.Attempt("", ""))
	const want = "make a sandbox: open mounts: mount /data: open the directory: no such file or directory; make the folder, or change the worker's mounts"
	if f := got.Failure; f == nil || f.Code != jobhost.FailStart || f.Message != want {
		t.Errorf("%+v", f)
	}
}

// TestStartWaits: a caller waiting for the start of another stops waiting when its context ends.
func TestStartWaits(t *testing.T) {
	t.Parallel()
	p := load(t, newEngine(t), guests.InitSpin, runtime.Limits{StartTime: time.Hour})
	first, stopFirst := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := p.Instantiate(first); !errors.Is(err, context.Canceled) {
			t.Errorf("the first: %v", err)
		}
	})
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := p.Instantiate(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another one: %v", err)
		}
		cancel()
	}
	stopFirst()
	wg.Wait()
}

func TestStartInSandbox(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	run := func(ctx context.Context, module []byte) jobhost.Outcome {
		s := runtime.NewSandbox(load(t, e, module, runtime.Limits{}), nil)
		return s.Run(ctx, runtimetest.Attempt("", ""))
	}
	got := run(t.Context(), guests.InitTrap)
	if f := got.Failure; f == nil || f.Code != jobhost.FailStart || !f.Retryable || !strings.HasPrefix(f.Message, "make a sandbox: the guest failed to start: ") || strings.Contains(f.Message, "\x1b") {
		t.Errorf("trapping: %+v", f)
	}
	for cause, want := range map[error]jobhost.OutcomeKind{
		hostcall.ErrCancelled:    jobhost.OutcomeCancelled,
		hostcall.ErrReturned:     jobhost.OutcomeReturned,
		errors.New("a shutdown"): jobhost.OutcomeReturned,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
		if got := run(ctx, guests.InitSpin); got.Kind != want {
			t.Errorf("stopped for %v while starting: %v %+v", cause, got.Kind, got.Failure)
		}
	}
}
