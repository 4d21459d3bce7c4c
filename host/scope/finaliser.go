package scope

import "errors"

// Finaliser is called once during the join of its scope, after all goroutines and
// children of it have ended. aborted is true unless status is [StatusOK]; primary
// is nil unless status is [StatusFailed]. It runs with nothing to interrupt it and
// should bound its own waiting.
//
// If it fails or panics, that is the scope's primary error if the scope was ok
// until then, and an extra error otherwise. Finalisers that come after it are told
// the status that results.
type Finaliser func(aborted bool, status Status, primary error) error

// attached is a finaliser that waits for its turn. The scope's mu protects it.
type attached struct {
	f          Finaliser // nil once it was taken out
	prev, next *attached
}

// Finally adds a finaliser. They run in reverse order of their adding. If it isn't
// admitted, it fails with an [*AdmissionError], and f will never be called: what
// it was to release is still the caller's.
func (s *Scope) Finally(f Finaliser) error {
	_, err := s.finally(f)
	return err
}

// Attach is [Scope.Finally] for what may be released before the scope ends, or handed
// on to another owner: detach takes the finaliser out and reports true. It reports
// false if that is too late, because the finaliser runs or has run, or was detached
// before. So the caller that gets true owns what f was to release.
func (s *Scope) Attach(f Finaliser) (detach func() bool, err error) {
	a, err := s.finally(f)
	if err != nil {
		return nil, err
	}
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.detachLocked(a) != nil
	}, nil
}

func (s *Scope) finally(f Finaliser) (*attached, error) {
	if f == nil {
		return nil, errors.New("add finaliser: it is nil")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admitLocked("finaliser", ""); err != nil {
		return nil, err
	}
	a := &attached{f: f, prev: s.finalisers}
	if a.prev != nil {
		a.prev.next = a
	}
	s.finalisers = a
	return a, nil
}

// detachLocked takes a finaliser out and returns it, or nil if that has been done.
func (s *Scope) detachLocked(a *attached) Finaliser {
	f := a.f
	if f == nil {
		return nil
	}
	if a.next == nil {
		s.finalisers = a.prev
	} else {
		a.next.prev = a.prev
	}
	if a.prev != nil {
		a.prev.next = a.next
	}
	*a = attached{}
	return f
}

// runFinaliser runs the last finaliser that hasn't been, and reports whether there
// was one.
func (s *Scope) runFinaliser() bool {
	s.mu.Lock()
	if s.finalisers == nil {
		s.mu.Unlock()
		return false
	}
	f := s.detachLocked(s.finalisers)
	status, primary := s.statusLocked(), s.primary
	s.mu.Unlock()
	if status == StatusRunning {
		status = StatusOK // what it will be if nothing else comes up
	}
	err := ErrGoexit
	defer func() { s.finaliserEnded(err) }()
	err = protect(func() error { return f(status != StatusOK, status, primary) })
	return true
}

func (s *Scope) finaliserEnded(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.primary == nil && s.cancelled == nil {
		s.primary = err
		s.tellLocked()
		return
	}
	s.extra = append(s.extra, err)
}
