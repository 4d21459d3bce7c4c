package fiber

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/scope"
)

// PauseFiber keeps a fiber from taking input from outside; what waits in its queue is
// worked on. Callers that wait for room are told that it is paused. Errors:
// not_found, conflict (it has ended).
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

// InterruptFiber tells a fiber to end and returns at once. It takes no more input from
// outside, its body is told and can still receive what was sent, and after the
// grace its context ends. One that waits for its permit doesn't begin. What has
// been interrupted or has ended is returned as it is.
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

// endUnbegun ends a fiber that has no permit and waits for none any more. Its hook
// isn't the interrupter's to wait for, unless the host has no goroutines any more.
func (r *Registry) endUnbegun(f *Fiber) {
	var e exit
	e.kill(FailInterrupted)
	if r.cfg.Scope.Go("", func(context.Context) error { r.finish(f, e); return nil }) != nil {
		r.finish(f, e)
	}
}

// Stop refuses further starts and those that wait for permits, and interrupts
// all fibers, which end as killed by the host. It doesn't wait for that; the
// join of the scope does. It comes by itself with the cancellation of the scope, but then
// nobody has a grace.
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

// interrupt tells the body that it should end, unless that is known.
func (f *Fiber) interrupt(code string, grace time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.killed != "" || f.ending {
		return
	}
	f.killed = code
	f.in.shutWith(errEnding(f.spec.ID))
	if f.tell != nil {
		f.tell()
	}
	f.told.Fire()
	if grace > 0 {
		f.grace = time.AfterFunc(grace, f.stop)
	} else {
		f.stopLocked()
	}
}

// stop ends the context of the body that was interrupted.
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

// begin marks the beginning of a run, with how many restarts that is.
func (f *Fiber) begin(restarts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs, f.startedAt = true, time.Now().UTC()
	f.restarts.count += restarts
}

// enter makes the body one that can be stopped, and reports false if it shouldn't
// even begin.
func (f *Fiber) enter(run *scope.Scope) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run = run
	return f.killed == ""
}

// leave takes away what the body has asked to be told.
func (f *Fiber) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run, f.tell, f.in.bell, f.waits = nil, nil, nil, false
}

// killedBy is why the fiber was told to end, as the code of a failure; empty = it
// wasn't.
func (f *Fiber) killedBy() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.killed
}

// isEnding reports whether the fiber has been told to end, or its exit is known.
func (f *Fiber) isEnding() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.killed != "" || f.ending
}
