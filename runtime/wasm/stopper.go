package wasm

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// stopReason is why a run was stopped from outside.
type stopReason uint8

const (
	notStopped  stopReason = iota
	byDeadline             // the deadline passed
	byContext              // the context of the run ended
	alreadyBusy            // another run is in progress: a bug in the caller
)

// stopper ends the runs of one instance at their deadline or when their context
// ends. It is the only place that decides when a guest is stopped; its
// [watchdog] says when to check.
type stopper struct {
	dog  *watchdog
	halt func()        // stops the guest permanently; called at most once
	done chan struct{} // closed with halt, for guests that wait in the host

	busy   atomic.Bool // a run is in progress; the watchdog checks it before it takes the lock
	halted atomic.Bool // set with done, for host calls that are about to begin

	mu       sync.Mutex // protects the rest; taken after the watchdog's
	reason   stopReason
	ctx      context.Context //nolint:containedctx // of the current run
	deadline time.Time       // of the current run; zero = none
}

func newStopper(dog *watchdog, halt func()) *stopper {
	s := &stopper{dog: dog, halt: halt, done: make(chan struct{})}
	dog.watch(s)
	return s
}

// begin starts a run, unless it is already over.
func (s *stopper) begin(ctx context.Context, deadline time.Time) stopReason {
	if why := s.enter(ctx, deadline); why != notStopped {
		return why
	}
	// Not under the lock: waking the watchdog takes the watchdog's own, under
	// which the watchdog takes this one.
	s.dog.begin()
	return notStopped
}

func (s *stopper) enter(ctx context.Context, deadline time.Time) stopReason {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.busy.Load():
		return alreadyBusy
	case s.reason != notStopped:
		return s.reason
	case ctx.Err() != nil:
		return byContext
	case !deadline.IsZero() && time.Until(deadline) <= 0:
		return byDeadline
	}
	s.ctx, s.deadline = ctx, deadline
	s.busy.Store(true)
	return notStopped
}

// end ends the run and says whether it was stopped: then the instance must not
// be used again, even if the guest was faster. A guest that broke when it was
// time to stop counts as stopped, since what it waited for may have ended for
// the same reason before the watchdog checked.
func (s *stopper) end(broke bool) stopReason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if broke && s.reason == notStopped {
		s.reason = s.over(time.Now())
	}
	s.busy.Store(false)
	s.ctx = nil
	s.dog.end()
	return s.reason
}

// look stops the run if it is over. The watchdog calls it.
func (s *stopper) look(now time.Time) {
	if !s.busy.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.busy.Load() || s.reason != notStopped {
		return
	}
	if s.reason = s.over(now); s.reason != notStopped {
		s.halted.Store(true)
		close(s.done)
		s.halt()
	}
}

// over says why the current run should end now, if it should.
func (s *stopper) over(now time.Time) stopReason {
	switch {
	case s.ctx.Err() != nil:
		return byContext
	case !s.deadline.IsZero() && !now.Before(s.deadline):
		return byDeadline
	}
	return notStopped
}

// close stops watching this instance, and ends a run that a bug in the host has
// interrupted.
func (s *stopper) close() {
	if s.busy.Load() {
		s.end(true)
	}
	s.dog.forget(s)
}
