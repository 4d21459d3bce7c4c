package wasm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// Instantiate creates a sandbox. The first one of a plugin is initialised, the others are
// copies of its state then, unless each is to be initialised separately. What the guest logs
// during initialisation is only reported if that fails.
func (p *Plugin) Instantiate(ctx context.Context) (runtime.Instance, error) {
	if !p.copies() {
		i, err := p.initialised(ctx)
		if err != nil {
			return nil, err
		}
		return i, nil
	}
	img, err := p.beginning(ctx)
	if err != nil {
		return nil, err
	}
	i, err := p.open(ctx, img)
	if err != nil {
		return nil, err
	}
	i.guest.reset(img.remembered)
	return i, nil
}

// open creates an instance: empty, or as a copy of an image.
func (p *Plugin) open(ctx context.Context, img *image) (_ *Instance, err error) {
	i := &Instance{plugin: p, image: img}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Close(ctx))
		}
	}()
	i.stop = newStopper(p.engine.dog, i.halt)
	if i.system, err = wasiabi.New(p.system(i.stop.done)); err != nil {
		return nil, p.unmounted(err)
	}
	i.frame = frame{Context: context.Background(), stop: i.stop, wasi: i.system}
	if i.stack, err = p.engine.stacks.take(); err != nil {
		return nil, err
	}
	if p.engine.polling {
		i.frame.Context, i.cancel = context.WithCancel(context.Background())
	}
	if i.guest, err = p.abi.guest(ctx, i); err != nil {
		return nil, err
	}
	for n, part := range p.parts {
		var like *likeness
		if img != nil {
			like = img.bodies[n]
		}
		b, err := part.open(i.guest.resolver(ctx), p.runtime, p.limits.MemoryBytes, like)
		if err != nil {
			return nil, err
		}
		i.bodies = append(i.bodies, b)
		i.module = b.module
		i.guest.link(part.name, b.module)
	}
	i.guest.attach()
	return i, nil
}

// unmounted is the error for folders that can't be opened. Where they are on
// the host is not shown to those who submit jobs.
func (p *Plugin) unmounted(err error) error {
	p.engine.logger.Error("mounts can't be opened", "worker", p.source.Worker, "error", err)
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: "open mounts: " + text.Line(err.Error(), 500),
		Hint: "make the folder, or change the worker's mounts", Cause: err,
	}
}

// initialised returns an instance that has been initialised.
func (p *Plugin) initialised(ctx context.Context) (*Instance, error) {
	i, err := p.open(ctx, nil)
	if jobhost.CodeOf(err) == jobhost.CodeUnavailable {
		return nil, err
	}
	if err != nil {
		return nil, &jobhost.Error{
			Code: jobhost.CodeInvalid, Message: "the module can't be instantiated: " + text.Line(err.Error(), 200),
		}
	}
	at := &hostcall.Attempt{
		Worker: p.source.Worker, Config: p.source.Config,
		Limits: hostcall.Limits{LogBytes: 4 << 10, LineBytes: 1 << 10},
	}
	starting, cancel := context.WithTimeout(ctx, p.limits.StartTime)
	defer cancel()
	if err := i.initialise(starting, at); err != nil {
		err = i.startError(ctx, starting, at, err)
		return nil, errors.Join(err, i.Close(ctx))
	}
	return i, nil
}

// initialise runs the guest's initialisation.
func (i *Instance) initialise(ctx context.Context, at *hostcall.Attempt) (err error) {
	deadline, _ := ctx.Deadline()
	if i.stop.begin(ctx, deadline) != notStopped {
		return errStopped // maybe a moment before ctx reports it
	}
	i.enter(at, 0)
	for _, b := range i.bodies {
		if err == nil {
			err = b.start(i)
		}
	}
	if err == nil {
		err = i.guest.initialise()
	}
	i.leave(at)
	i.stack.trim()
	if i.stop.end(err != nil) != notStopped {
		return errStopped
	}
	return err
}

var errStopped = errors.New("it was stopped")

// startError says why there is no sandbox, with the last of the guest's log.
func (i *Instance) startError(ctx, starting context.Context, at *hostcall.Attempt, err error) error {
	cause := context.Cause(ctx)
	if deadline, ok := ctx.Deadline(); cause == nil && ok && !time.Now().Before(deadline) {
		cause = context.DeadlineExceeded // the watchdog noticed first
	}
	if cause != nil {
		return fmt.Errorf("start the guest: %w", cause)
	}
	message, hint := "", ""
	if starting.Err() != nil || errors.Is(err, errStopped) {
		message = fmt.Sprintf("the guest was not ready within %v", i.plugin.limits.StartTime)
		hint = "raise the worker's start_timeout, or do less in _initialize"
	} else {
		message = "the guest failed to start: " + i.diagnose(at, err).Message
	}
	if lines, _ := at.TakeLog(); len(lines) > 0 {
		hint = strings.TrimPrefix(hint+"; its log: ", "; ") + strings.TrimSpace(string(lines))
	}
	return &jobhost.Error{Code: jobhost.CodeInvalid, Message: message, Hint: hint}
}

// system returns what the guest sees of an operating system.
func (p *Plugin) system(stop <-chan struct{}) wasiabi.Config {
	system := &p.source.System
	config := wasiabi.Config{Args: system.Args, BareEnv: system.BareEnv, PreciseClock: system.PreciseClock, Stop: stop}
	for _, name := range slices.Sorted(maps.Keys(p.source.Env)) {
		config.Env = append(config.Env, name+"="+p.source.Env[name])
	}
	for _, m := range system.Mounts {
		config.Mounts = append(config.Mounts, wasiabi.Mount{Host: m.Host, Guest: m.Guest, ReadOnly: !m.Write})
	}
	return config
}
