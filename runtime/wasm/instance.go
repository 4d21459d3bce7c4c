package wasm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// Instance is one sandbox; it implements [runtime.Instance].
type Instance struct {
	plugin *Plugin
	bodies []*body // in the order of the plugin's parts, the main one last
	module api.Module
	stop   *stopper
	system *wasiabi.System
	guest  guest
	frame  frame
	stack  *stack
	// image is the state it is reset to; nil = it is replaced instead.
	image *image
	// cancel ends the context of its calls, if that is how a guest is stopped.
	cancel context.CancelFunc
}

// Run runs one attempt, and resets the instance. The guest is entered only
// here, and never reentered.
func (i *Instance) Run(ctx context.Context, at *hostcall.Attempt) runtime.Result {
	entry, ok := i.plugin.entries[at.Entry]
	if !ok {
		return runtime.Result{Outcome: noEntry(i.plugin, at)}
	}
	switch i.stop.begin(ctx, at.Deadline) {
	case byDeadline:
		return runtime.Result{Outcome: at.TimedOut()}
	case byContext:
		return runtime.Result{Outcome: at.Stopped(ctx)}
	case alreadyBusy:
		return runtime.Result{Outcome: at.Failure(jobhost.FailInternal, jobhost.CategorySystem, "the sandbox is in use")}
	}
	if i.cancel == nil {
		i.frame.Context = ctx
	}
	i.enter(at, i.plugin.limits.Fuel)
	outcome, err := i.guest.call(entry, at)
	i.leave(at)
	stopped := i.stop.end(err != nil)

	result := runtime.Result{Outcome: outcome}
	if err != nil {
		result.Outcome, result.Replace = i.failed(ctx, at, stopped, err), i.spoilt(err)
	}
	if stopped != notStopped {
		result.Replace = runtime.ReplacedStopped
	}
	for _, b := range i.bodies {
		result.Outcome.Fuel += b.meter.used()
	}
	if result.Outcome.Fuel > trimAfter {
		i.stack.trim()
	}
	result.MemoryRefused = i.refused()
	if result.Replace == "" {
		i.renew(&result)
	}
	return result
}

// enter binds the instance to an attempt.
func (i *Instance) enter(at *hostcall.Attempt, fuel int64) {
	i.frame.at = at
	i.system.Begin(at, i.plugin.streams)
	for _, b := range i.bodies {
		b.meter.begin(fuel)
		b.memory.Forgive()
	}
}

// leave undoes enter. An idle instance retains nothing of the attempt.
func (i *Instance) leave(at *hostcall.Attempt) {
	i.system.End()
	at.Flush()
	i.frame.at = nil
	if i.cancel == nil {
		i.frame.Context = context.Background()
	}
}

// renew resets the instance, or says why that is impossible.
func (i *Instance) renew(result *runtime.Result) {
	switch {
	case i.plugin.source.Isolation == runtime.IsolateInstance:
		if !i.guest.clean() {
			result.Replace = runtime.ReplacedExit
		}
		return
	case i.plugin.source.Isolation == runtime.IsolateFresh:
		result.Replace = runtime.ReplacedFresh
		return
	case i.image == nil:
		result.Replace = runtime.ReplacedTables
		return
	}
	began := time.Now()
	keep, err := i.restore()
	switch {
	case err != nil:
		i.plugin.engine.logger.Error("sandbox can't be put back", "worker", i.plugin.source.Worker, "error", err)
		result.Replace = runtime.ReplacedInternal
	case !keep:
		result.Replace = runtime.ReplacedGrown
	default:
		result.Reset = max(time.Since(began), 1)
	}
}

// halt stops the guest permanently, from another goroutine.
func (i *Instance) halt() {
	for _, b := range i.bodies {
		b.meter.halt()
	}
	if i.cancel != nil {
		i.cancel()
	}
}

// exhausted reports whether the guest used up its fuel.
func (i *Instance) exhausted() bool {
	for _, b := range i.bodies {
		if b.meter.exhausted() {
			return true
		}
	}
	return false
}

// refused reports whether the guest was refused memory in this attempt.
func (i *Instance) refused() bool {
	for _, b := range i.bodies {
		if b.memory.Refused() {
			return true
		}
	}
	return i.guest.refused()
}

// view returns the bytes at a location that the guest returned. They are part of its memory.
func (i *Instance) view(ptr, n uint64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	memory := i.module.Memory()
	if size := uint64(memory.Size()); ptr+n > size {
		return nil, &badPlace{fmt.Sprintf("the entry returned %d bytes at %d, outside of the memory of %d bytes", n, ptr, size)}
	}
	b, _ := memory.Read(uint32(ptr), uint32(n))
	return b, nil
}

// badPlace is a result of the guest that points outside its memory.
type badPlace struct{ message string }

func (e *badPlace) Error() string { return e.message }

// Close frees the instance.
func (i *Instance) Close(ctx context.Context) error {
	if i.stop != nil {
		i.stop.close()
	}
	var errs []error
	for _, b := range i.bodies {
		errs = append(errs, b.close(ctx))
	}
	i.bodies = nil
	if i.guest != nil {
		errs = append(errs, i.guest.close(ctx))
	}
	if i.system != nil {
		errs = append(errs, i.system.Close())
	}
	if i.stack != nil {
		errs = append(errs, i.plugin.engine.stacks.give(i.stack))
		i.stack = nil
	}
	if i.cancel != nil {
		i.cancel()
	}
	return errors.Join(errs...)
}
