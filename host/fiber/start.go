package fiber

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/internal/logkey"
)

// Start starts a fiber and returns when it runs. onTerminate may be nil.
//
// If a fiber with the id was started with the same specification, it is returned;
// if it is still waiting for its permit, this call waits too and has the same
// result. One started with a different specification is a conflict. If one is
// ending, because it was interrupted for instance, Start waits for its end and
// then starts the new one.
//
// The id is taken immediately, the permit when one is free: in the order of the
// calls, unless the configuration says to fail with exhausted. If ctx ends first,
// and no other call is waiting for the same fiber, there is no fiber; nor if the
// host stops. Its onTerminate isn't called then. A fiber interrupted before it
// has its permit ends as killed; the error wraps [jobhost.ErrFiberEnded].
//
// Other errors: invalid, unavailable.
func (r *Registry) Start(ctx context.Context, spec jobhost.FiberSpec, body Body, onTerminate OnTerminate) (jobhost.Fiber, error) {
	if err := spec.Check(); err != nil {
		return jobhost.Fiber{}, err
	}
	spec.Restart = spec.Restart.OrDefaults()
	for ctx.Err() == nil {
		f, before, err := r.reserve(spec, body, onTerminate)
		switch {
		case err != nil:
			return jobhost.Fiber{}, err
		case f != nil:
			return r.awaitBegin(ctx, f)
		}
		// In any case, the id is free then, or ctx has ended.
		_, _ = op.Perform(ctx, before.ended.Get())
	}
	return jobhost.Fiber{}, fmt.Errorf("start fiber %s: %w", spec.ID, context.Cause(ctx))
}

// reserve returns the fiber that the caller may wait for, its own or an identical
// one, or else the earlier one that must end first.
func (r *Registry) reserve(spec jobhost.FiberSpec, body Body, onTerminate OnTerminate) (f, before *Fiber, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f = r.live[spec.ID]; f != nil {
		switch {
		case f.isEnding():
			return nil, f, nil
		case !alike(&f.spec, &spec):
			return nil, nil, errUnlike(spec.ID)
		}
		f.starters++
		return f, nil, nil
	}
	if r.stopped {
		return nil, nil, errStopping(nil)
	}
	immediate := r.free > 0 // no fiber is waiting then
	if full := !immediate && r.cfg.FailWhenFull; full || len(r.live) >= jobhost.MaxFibers {
		r.cfg.Observe.Refused(LimitFibers)
		return nil, nil, errTooMany(len(r.live))
	}
	f = r.newFiber(spec, body, onTerminate)
	f.starters = 1
	r.live[spec.ID] = f
	if immediate {
		r.launchLocked(f)
	} else {
		f.place = r.waiting.PushBack(f)
	}
	return f, nil, nil
}

// newFiber returns a fiber that isn't shared yet. Its arguments are copied, since
// it outlives the call.
func (r *Registry) newFiber(spec jobhost.FiberSpec, body Body, onTerminate OnTerminate) *Fiber {
	spec.Init, spec.Labels = bytes.Clone(spec.Init), maps.Clone(spec.Labels)
	f := &Fiber{spec: spec, body: body, onTerminate: onTerminate, registry: r, createdAt: time.Now().UTC()}
	f.in.most, f.in.mostBytes = r.cfg.InputMessages, r.cfg.InputBytes
	return f
}

// alike reports whether two specs, with their defaults, are equivalent.
func alike(a, b *jobhost.FiberSpec) bool {
	return a.ID == b.ID && a.Worker == b.Worker && a.Entry == b.Entry && a.Restart == b.Restart &&
		bytes.Equal(a.Init, b.Init) && maps.Equal(a.Labels, b.Labels)
}

// launchLocked gives a fiber a permit, of which one must be free, and starts it.
func (r *Registry) launchLocked(f *Fiber) {
	f.permit = true
	r.free--
	f.begin(0)
	if err := r.cfg.Scope.Go("", func(context.Context) error { r.run(f); return nil }); err != nil {
		f.permit = false
		r.free++
		r.withdrawLocked(f, errStopping(err))
		return
	}
	r.cfg.Observe.Started(f.spec.Worker)
	f.begun.Set(struct{}{}, nil)
}

// grantLocked gives free permits to waiting fibers.
func (r *Registry) grantLocked() {
	for r.free > 0 && r.waiting.Len() > 0 {
		r.launchLocked(r.leaveQueueLocked(r.waiting.Front().Value.(*Fiber)))
	}
}

// leaveQueueLocked removes a fiber from those waiting for a permit.
func (r *Registry) leaveQueueLocked(f *Fiber) *Fiber {
	r.waiting.Remove(f.place)
	f.place = nil
	return f
}

// withdrawLocked removes a fiber without a permit, as if it had never existed.
func (r *Registry) withdrawLocked(f *Fiber, err error) {
	delete(r.live, f.spec.ID)
	f.mu.Lock()
	f.ending = true
	gone := errNotFound(f.spec.ID)
	f.in.shutWith(gone)
	unread := f.in.clear()
	f.closeHubLocked(gone)
	f.mu.Unlock()
	if unread > 0 {
		r.cfg.Logger.Warn("fiber never began, and messages to it are lost", logkey.Fiber, f.spec.ID, logkey.Count, unread)
	}
	f.begun.Set(struct{}{}, err)
	f.ended.Set(nil, gone)
}

// awaitBegin waits until a fiber runs, on behalf of one of its starters.
func (r *Registry) awaitBegin(ctx context.Context, f *Fiber) (jobhost.Fiber, error) {
	_, _ = op.Perform(ctx, f.begun.Get())
	r.mu.Lock()
	f.starters--
	_, begun, err := f.begun.Peek()
	if !begun {
		err = fmt.Errorf("start fiber %s: %w", f.spec.ID, context.Cause(ctx))
		if f.starters == 0 && f.place != nil {
			r.withdrawLocked(r.leaveQueueLocked(f), err)
		}
	}
	r.mu.Unlock()
	if err != nil {
		return jobhost.Fiber{}, err
	}
	return f.now(), nil
}
