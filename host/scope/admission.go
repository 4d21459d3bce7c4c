package scope

import "errors"

// Close stops admission: goroutines, children and finalisers are rejected from now
// on. What is in the scope isn't touched, and its children go on admitting. Only
// the first reason counts; it may be nil. Close reports whether it was the first.
func (s *Scope) Close(reason error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.joining {
		return false
	}
	s.closed, s.closedWhy = true, reason
	return true
}

// admitLocked returns an *AdmissionError if the scope takes in nothing more.
func (s *Scope) admitLocked(what, name string) error {
	var reason Reason
	switch {
	case s.joining:
		reason = ReasonJoining
	case s.primary != nil:
		reason = ReasonFailed
	case s.cancelled != nil:
		reason = ReasonCancelled
	case s.closed:
		reason = ReasonClosed
	default:
		return nil
	}
	err := &AdmissionError{Scope: s.name, What: what, Name: name, Reason: reason, Cause: s.closedWhy}
	if s.cancelled != nil {
		err.Cause = s.cancelled
	}
	return err
}

// Finaliser is called once during the join of its scope, after all goroutines and
// children of it have ended. aborted is true unless status is [StatusOK]; primary
// is nil unless status is [StatusFailed]. It runs with nothing to interrupt it and
// should bound its own waiting.
//
// If it fails or panics, that is the scope's primary error if the scope was ok
// until then, and an extra error otherwise. Finalisers that come after it are told
// the status that results.
type Finaliser func(aborted bool, status Status, primary error) error

// Finally adds a finaliser. They run in reverse order of their adding. If it isn't
// admitted, it fails with an [*AdmissionError], and f will never be called: what
// it was to release is still the caller's.
func (s *Scope) Finally(f Finaliser) error {
	if f == nil {
		return errors.New("add finaliser: it is nil")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admitLocked("finaliser", ""); err != nil {
		return err
	}
	s.finalisers = append(s.finalisers, f)
	return nil
}
