package scope

import (
	"context"
	"fmt"
)

// Cancel cancels the scope and everything below it: admission stops, contexts end.
// It doesn't wait. Only the first reason counts, whether it was given here, to a
// parent, or by a failure; a nil reason is [context.Canceled]. Cancel reports
// whether it was the first. Once the finalisers run there is nothing left to
// cancel, and it reports false.
func (s *Scope) Cancel(reason error) bool {
	if reason == nil {
		reason = context.Canceled
	}
	return s.cancelWith(&Cancelled{Scope: s.name, Reason: reason})
}

func (s *Scope) cancelWith(c *Cancelled) bool {
	s.mu.Lock()
	if s.cancelled != nil || s.sealed {
		s.mu.Unlock()
		return false
	}
	s.cancelled = c
	s.notifyLocked()
	children := s.childrenLocked()
	s.mu.Unlock()
	s.cancelBelow(c, children)
	return true
}

// childrenLocked returns the children that haven't ended. Once admission has
// stopped there will be no more.
func (s *Scope) childrenLocked() []*Scope {
	var children []*Scope
	for child := s.first; child != nil; child = child.next {
		children = append(children, child)
	}
	return children
}

// cancelBelow ends the scope's context after all scopes below are cancelled.
func (s *Scope) cancelBelow(c *Cancelled, children []*Scope) {
	for _, child := range children {
		child.cancelWith(c)
	}
	s.cancelCtx(c)
}

// fail records a failure. The first one cancels the scope.
func (s *Scope) fail(err error) {
	s.mu.Lock()
	if s.primary != nil {
		s.extra = append(s.extra, err)
		s.mu.Unlock()
		return
	}
	s.primary = err
	if s.cancelled != nil {
		s.notifyLocked()
		s.mu.Unlock()
		return
	}
	c := &Cancelled{Scope: s.name, Reason: err}
	s.cancelled, s.faulted = c, true
	s.notifyLocked()
	children := s.childrenLocked()
	s.mu.Unlock()
	s.cancelBelow(c, children)
}

// escaped handles the error that a goroutine of the scope ended with.
func (s *Scope) escaped(name string, err error) {
	s.mu.Lock()
	cancelled := s.cancelled
	s.mu.Unlock()
	is, purely := isCancellation(err, cancelled != nil)
	if name != "" {
		err = fmt.Errorf("%s: %w", name, err)
	}
	if !is {
		s.fail(err)
		return
	}
	if cancelled == nil {
		s.cancelWith(cancellation(err))
	}
	if !purely {
		s.mu.Lock()
		s.extra = append(s.extra, err)
		s.mu.Unlock()
	}
}

// stopped returns why nothing should continue in the scope, or nil.
func (s *Scope) stopped() *Cancelled {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancelled == nil && s.ended {
		return ended
	}
	return s.cancelled
}
