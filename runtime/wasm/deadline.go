package wasm

import (
	"context"
	"sync"
	"time"
)

// stopReason is why a run was stopped from outside.
type stopReason uint8

const (
	notStopped  stopReason = iota
	byDeadline             // the deadline passed
	byContext              // the context of the run ended
	alreadyBusy            // another run is under way: a fault of the caller
)

// stopper ends the runs of one instance at their deadline or when their
// context ends. It is the one place that knows how a guest is stopped.
//
// A run that ends in time costs two uncontended locks and no system call: the
// timer is not stopped and started with each run, but left to fire. When it
// fires early for the run then under way it is set again for the rest, and
// when there is none it stays off until a run needs it.
type stopper struct {
	halt func()        // stops the guest for good; called at most once
	done chan struct{} // closed with halt, for guests that sleep in the host

	mu       sync.Mutex // protects the rest
	running  bool
	reason   stopReason
	deadline time.Time // of the run under way; zero = none
	timer    *time.Timer
	armed    time.Time // when the timer fires; zero = it is off

	// watched is the Done channel of the context that unwatch belongs to. The
	// watch stays from run to run, as long as they have the same context.
	watched <-chan struct{}
	unwatch func() bool
}

func newStopper(halt func()) *stopper {
	return &stopper{halt: halt, done: make(chan struct{})}
}

// begin starts a run, unless it is over before it began.
func (s *stopper) begin(ctx context.Context, deadline time.Time) stopReason {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running:
		return alreadyBusy
	case s.reason != notStopped:
		return s.reason
	}
	if done := ctx.Done(); done != nil {
		if ctx.Err() != nil {
			return byContext
		}
		s.watchLocked(ctx, done)
	}
	if !deadline.IsZero() && (s.armed.IsZero() || deadline.Before(s.armed)) {
		left := time.Until(deadline)
		if left <= 0 {
			return byDeadline
		}
		s.armLocked(deadline, left)
	}
	s.deadline = deadline
	s.running = true
	return notStopped
}

// end ends the run and says whether it was stopped: then the instance must not
// be used again, even if the guest was faster.
func (s *stopper) end() stopReason {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	return s.reason
}

// close lets go of timer and context.
func (s *stopper) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.unwatch != nil {
		s.unwatch()
	}
	s.watched, s.unwatch = nil, nil
}

func (s *stopper) armLocked(at time.Time, left time.Duration) {
	s.armed = at
	if s.timer == nil {
		s.timer = time.AfterFunc(left, s.fire)
		return
	}
	s.timer.Reset(left)
}

// fire runs on the timer's goroutine. It decides by the clock, so that a late
// call for an earlier run does no harm to this one.
func (s *stopper) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = time.Time{}
	if !s.running || s.deadline.IsZero() {
		return
	}
	if left := time.Until(s.deadline); left > 0 {
		s.armLocked(s.deadline, left)
		return
	}
	s.stopLocked(byDeadline)
}

// watchLocked sees to it that the end of ctx stops the run.
func (s *stopper) watchLocked(ctx context.Context, done <-chan struct{}) {
	if done == s.watched {
		return
	}
	if s.unwatch != nil {
		s.unwatch()
	}
	s.watched = done
	s.unwatch = context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		// A context that was replaced meanwhile is none of our business.
		if s.watched == done && s.running {
			s.stopLocked(byContext)
		}
	})
}

func (s *stopper) stopLocked(why stopReason) {
	if s.reason != notStopped {
		return
	}
	s.reason = why
	close(s.done)
	s.halt()
}
