package op

import "sync"

// Future is a result that will be set once and can be read by any number of
// performings, before and after. It is for answers, exits and everything else
// that happens once. The zero value is ready for use; a Future is safe for
// concurrent use and must not be copied.
type Future[T any] struct {
	mu      sync.Mutex // protects the fields below
	set     bool
	value   T
	err     error
	waiters WaitList[T]
}

// Set sets the result, wakes all waiters and reports true, or reports false if
// there is a result already.
func (f *Future[T]) Set(v T, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.set {
		return false
	}
	f.set, f.value, f.err = true, v, err
	f.waiters.CompleteAll(v, err)
	return true
}

// Get returns an op that results in the result, as soon as it is set.
func (f *Future[T]) Get() Op[T] { return New(f.Peek, f.block) }

// Peek returns the result and reports whether it is set.
func (f *Future[T]) Peek() (v T, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value, f.set, f.err
}

func (f *Future[T]) block(w *Waiter[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.set {
		w.Complete(f.value, f.err)
		return
	}
	f.waiters.Wait(w, &f.mu)
}

// Signal is a condition that becomes true once and stays true. The zero value is
// ready for use; a Signal is safe for concurrent use and must not be copied.
type Signal struct{ f Future[struct{}] }

// Fire makes the condition true and reports true, or reports false if it was true
// already.
func (s *Signal) Fire() bool { return s.f.Set(struct{}{}, nil) }

// Fired reports whether the condition is true.
func (s *Signal) Fired() bool {
	_, ok, _ := s.f.Peek()
	return ok
}

// Wait returns an op that is ready once the condition is true.
func (s *Signal) Wait() Op[struct{}] { return s.f.Get() }
