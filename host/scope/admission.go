package scope

// Close stops admission: goroutines, children and finalisers are rejected from now
// on. What is already in the scope continues, and its children keep admitting.
// Only the first reason counts; it may be nil. Close reports whether it was the
// first.
func (s *Scope) Close(reason error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.joining {
		return false
	}
	s.closed, s.closedWhy = true, reason
	s.notifyLocked()
	return true
}

// admitLocked returns an *AdmissionError if the scope no longer admits anything.
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
