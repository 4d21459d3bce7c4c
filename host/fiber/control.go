package fiber

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/scope"
)

// PauseFiber stops a fiber from accepting input from outside; messages already in its queue
// are processed. Callers waiting for room get an error. Errors: not_found, conflict (it
// has ended).
func (r *Registry) PauseFiber(_ context.Context, id string) (jobhost.Fiber, error) {
	return r.setPaused(id, true)
}

// ResumeFiber ends a pause; see [Registry.PauseFiber].
func (r *Registry) ResumeFiber(_ context.Context, id string) (jobhost.Fiber, error) {
	return r.setPaused(id, false)
}

func (r *Registry) setPaused(id string, paused bool) (jobhost.Fiber, error) {
	f, end := r.find(id)
	switch {
	case f == nil && end == nil:
		return jobhost.Fiber{}, errNotFound(id)
	case f == nil:
		return *end, errOver(jobhost.CodeConflict, end)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end != nil {
		return *f.end, errOver(jobhost.CodeConflict, f.end)
	}
	if f.paused = paused; paused {
		f.in.dismiss(errPaused(id))
	}
	return f.nowLocked(), nil
}

// InterruptFiber asks a fiber to end and returns at once. The fiber accepts no more input from
// outside, its body is notified and can still receive earlier messages, and after the
// grace period its context ends. A fiber that waits for its permit doesn't start. If it
// was interrupted before or has ended, it is returned as it is.
func (r *Registry) InterruptFiber(_ context.Context, id string) (jobhost.Fiber, error) {
	r.mu.Lock()
	f := r.live[id]
	if f == nil {
		end := r.past.get(id)
		r.mu.Unlock()
		if end == nil {
			return jobhost.Fiber{}, errNotFound(id)
		}
		return *end, nil
	}
	unbegun := f.place != nil
	if unbegun {
		r.leaveQueueLocked(f)
	}
	f.interrupt(FailInterrupted, r.cfg.Grace)
	r.mu.Unlock()
	if unbegun {
		r.endUnbegun(f)
	}
	return f.now(), nil
}

// endUnbegun ends a fiber without a permit that no longer waits for one. The interrupter
// doesn't wait for its hook, unless the host starts no more goroutines.
func (r *Registry) endUnbegun(f *Fiber) {
	var e exit
	e.kill(FailInterrupted)
	if r.cfg.Scope.Go("", func(context.Context) error { r.finish(f, e); return nil }) != nil {
		r.finish(f, e)
	}
}

// Stop refuses further starts and those waiting for permits, and interrupts all fibers,
// which end as killed by the host. It doesn't wait for them; the join of the scope does.
// The cancellation of the scope calls it too, but then there is no grace period.
func (r *Registry) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	r.stopped = true
	for r.waiting.Len() > 0 {
		r.withdrawLocked(r.leaveQueueLocked(r.waiting.Front().Value.(*Fiber)), errStopping(nil))
	}
	for _, f := range r.live {
		f.interrupt(FailStopped, r.cfg.Grace)
	}
}

// interrupt asks the body to end, unless that was done before.
func (f *Fiber) interrupt(code string, grace time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.killed != "" || f.ending {
		return
	}
	f.killed = code
	f.in.shutWith(errEnding(f.spec.ID))
	if f.onInterrupt != nil {
		f.onInterrupt()
	}
	f.interrupted.Fire()
	if grace > 0 {
		f.grace = time.AfterFunc(grace, f.stop)
	} else {
		f.stopLocked()
	}
}

// stop ends the context of an interrupted body.
func (f *Fiber) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopLocked()
}

func (f *Fiber) stopLocked() {
	if f.run != nil {
		f.run.Cancel(errGraceOver)
	}
}

// begin records the start of a run, which counts as that many restarts.
func (f *Fiber) begin(restarts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs, f.startedAt = true, time.Now().UTC()
	f.restarts.count += restarts
}

// enter registers the body's scope so that it can be stopped; false = it should not even
// start.
func (f *Fiber) enter(run *scope.Scope) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run = run
	return f.killed == ""
}

// leave removes the body's scope and callbacks.
func (f *Fiber) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run, f.onInterrupt, f.in.bell, f.waits = nil, nil, nil, false
}

// killedBy returns why the fiber was asked to end, as a failure code; empty = it wasn't.
func (f *Fiber) killedBy() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.killed
}

// isEnding reports whether the fiber was asked to end, or its exit is decided.
func (f *Fiber) isEnding() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.killed != "" || f.ending
}
