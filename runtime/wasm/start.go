package wasm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/jobabi"
)

// Instantiate makes a sandbox and runs its _initialize, if it has one. What
// the guest logs meanwhile is told only when that fails.
func (p *Plugin) Instantiate(ctx context.Context) (runtime.Instance, error) {
	i := &Instance{
		plugin: p,
		memory: &memory{limit: uint64(p.limits.MemoryBytes)},
		stdio:  newStdio(),
		// A guest is stopped by its stopper, so the context of its runs never ends.
		frame:   jobabi.NewFrame(context.Background()),
		entries: make([]api.Function, len(p.info.Entries)),
	}
	// The guest is closed by Close; all it takes to stop it is to close the gate.
	i.stop = newStopper(func() { _ = i.gate.Close(context.Background()) })

	at := &hostcall.Attempt{
		Worker: p.worker,
		Limits: hostcall.Limits{LogBytes: 4 << 10, LineBytes: 1 << 10},
	}
	i.stdio.enter(at)
	starting, cancel := context.WithTimeout(ctx, p.limits.StartTime)
	defer cancel()
	i.starting = starting.Done()
	guest, err := i.instantiate(starting, at)
	i.starting = nil
	i.stdio.flush()
	if err != nil {
		return nil, i.startError(ctx, starting, at, err)
	}
	i.guest = guest
	if i.gate, err = openGate(ctx, p.engine.gates, p.gate, guest); err != nil {
		return nil, errors.Join(err, i.Close(ctx))
	}
	if p.mailbox {
		i.buf = i.gate.ExportedFunction(jobabi.Buffer)
	}
	return i, nil
}

// instantiate makes the guest, and survives modules that wazero panics on.
func (i *Instance) instantiate(ctx context.Context, at *hostcall.Attempt) (guest api.Module, err error) {
	defer func() {
		if recover() != nil {
			guest, err = nil, errors.New("its tables or data don't fit")
		}
	}()
	// A frame of its own, which wazero's watcher of the context may keep a little longer.
	frame := jobabi.NewFrame(experimental.WithMemoryAllocator(ctx, i.memory))
	frame.Enter(at)
	return i.plugin.runtime.InstantiateModule(frame, i.plugin.module, i.config())
}

// config is what a guest finds in its WASI: no arguments, no environment, no
// files, its two streams in the log, true clocks and randomness.
func (i *Instance) config() wazero.ModuleConfig {
	return wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions(jobabi.Initialize).
		WithStdout(&i.stdio.out).
		WithStderr(&i.stdio.err).
		WithRandSource(rand.Reader).
		WithSysWalltime().
		WithSysNanotime().
		WithNanosleep(i.sleep)
}

// sleep sleeps for the guest, until it is stopped at most: the guest notices
// at its next loop header.
func (i *Instance) sleep(ns int64) {
	if ns <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-i.stop.done:
	case <-i.starting:
	}
}

// startError says why there is no sandbox, with the last that the guest said.
func (i *Instance) startError(ctx, starting context.Context, at *hostcall.Attempt, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("start the guest: %w", cause)
	}
	message, hint := "", ""
	if starting.Err() != nil {
		message = fmt.Sprintf("the guest was not ready within %v", i.plugin.limits.StartTime)
		hint = "raise the worker's start time, or do less in " + jobabi.Initialize
	} else if _, exit := errors.AsType[*sys.ExitError](err); exit || strings.Contains(err.Error(), stackMark) {
		message = "the guest failed to start: " + i.diagnose(at, err).Message
	} else {
		// It never ran: a segment that doesn't fit, say.
		message = "the module can't be instantiated: " + hostcall.Escape([]byte(err.Error()), 200)
	}
	if lines, _ := at.TakeLog(); len(lines) > 0 {
		hint = strings.TrimPrefix(hint+"; its log: ", "; ") + strings.TrimSpace(string(lines))
	}
	return &jobhost.Error{Code: jobhost.CodeInvalid, Message: message, Hint: hint}
}
