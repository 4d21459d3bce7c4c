package scope

import "github.com/jobhost/jobhost/host/op"

// watchers are the waiters for changes of a scope. Few scopes have any.
type watchers struct {
	closed    op.WaitList[error]
	faulted   op.WaitList[error]
	cancelled op.WaitList[*Cancelled]
}

// CloseOp returns an op that is ready when the scope no longer admits anything, for
// whatever reason, and results in what [Scope.Admission] then returns. With it, work
// can stop being offered before it is rejected.
func (s *Scope) CloseOp() op.Op[error] {
	return watchOp(s, s.closedLocked, func(w *watchers) *op.WaitList[error] { return &w.closed })
}

// FaultOp returns an op that is ready when the scope has failed, and results in its
// primary error, as a value. It is never ready for a scope that ends without a
// failure; combine it with [Scope.JoinOp].
func (s *Scope) FaultOp() op.Op[error] {
	return watchOp(s, s.faultLocked, func(w *watchers) *op.WaitList[error] { return &w.faulted })
}

// CancelOp returns an op that is ready when the scope was cancelled by anything but
// its own failure, and results in the cause. A subsequent failure doesn't change
// that: then [Scope.FaultOp] is ready too.
func (s *Scope) CancelOp() op.Op[*Cancelled] {
	return watchOp(s, s.cancelLocked, func(w *watchers) *op.WaitList[*Cancelled] { return &w.cancelled })
}

// Admission returns nil while the scope admits goroutines, children and finalisers,
// and afterwards an [*AdmissionError] that says why it doesn't.
func (s *Scope) Admission() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.admitLocked("", "")
}

func (s *Scope) closedLocked() (error, bool) { //nolint:revive,staticcheck // the error is what is looked for
	err := s.admitLocked("", "")
	return err, err != nil
}

func (s *Scope) faultLocked() (error, bool) { //nolint:revive,staticcheck // the error is what is looked for
	return s.primary, s.primary != nil
}

func (s *Scope) cancelLocked() (*Cancelled, bool) {
	return s.cancelled, s.cancelled != nil && !s.faulted
}

// watchOp returns an op that is ready when look, called under s.mu, finds something.
func watchOp[T any](s *Scope, look func() (T, bool), list func(*watchers) *op.WaitList[T]) op.Op[T] {
	return op.New(
		func() (T, bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			v, ok := look()
			return v, ok, nil
		},
		func(w *op.Waiter[T]) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if v, ok := look(); ok {
				w.Complete(v, nil)
				return
			}
			if s.watchers == nil {
				s.watchers = new(watchers)
			}
			list(s.watchers).Wait(w, &s.mu)
		},
	)
}

// notifyLocked wakes the waiters for the state that the scope has reached.
func (s *Scope) notifyLocked() {
	if s.watchers == nil {
		return
	}
	notify(&s.watchers.closed, s.closedLocked)
	notify(&s.watchers.faulted, s.faultLocked)
	notify(&s.watchers.cancelled, s.cancelLocked)
}

func notify[T any](list *op.WaitList[T], look func() (T, bool)) {
	if v, ok := look(); ok {
		list.CompleteAll(v, nil)
	}
}
