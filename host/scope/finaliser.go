package scope

import "errors"

// Finaliser is called once during the join of its scope, after all its goroutines and
// children have ended. aborted is true unless status is [StatusOK]; primary is nil
// unless status is [StatusFailed]. Nothing interrupts it, so it should bound its own
// waiting.
//
// If it fails or panics, that is the scope's primary error if the scope was ok until
// then, and an extra error otherwise. Later finalisers get the resulting status.
type Finaliser func(aborted bool, status Status, primary error) error

// attached is a pending finaliser. The scope's mu protects it.
type attached struct {
	f          Finaliser // nil = it was removed
	prev, next *attached
}

// Finally adds a finaliser. Finalisers run in reverse order. If it isn't admitted,
// Finally fails with an [*AdmissionError] and f will never be called: what it should
// release still belongs to the caller.
func (s *Scope) Finally(f Finaliser) error {
	_, err := s.finally(f)
	return err
}

// Attach is [Scope.Finally] for things that may be released before the scope ends, or
// passed on to another owner: detach removes the finaliser and reports true. It
// reports false if the finaliser is running or has run, or was detached before. So
// the caller that gets true owns what f was to release.
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

// detachLocked removes a finaliser and returns it; nil = it was removed before.
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

// runFinaliser runs the last finaliser that hasn't run, and reports whether there was
// one.
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
		status = StatusOK // what it will be if nothing else happens
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
		s.notifyLocked()
		return
	}
	s.extra = append(s.extra, err)
}
