package scope

import (
	"context"
	"runtime/debug"
)

// Go runs f in a goroutine of the scope. f gets the scope's context and should
// return soon after it ends. Its error, prefixed by name unless that is empty, is
// handled by the scope: see the package comment on outcomes. A panic in f is a
// failure too.
//
// Go fails with an [*AdmissionError] if the scope no longer admits anything.
func (s *Scope) Go(name string, f func(ctx context.Context) error) error {
	s.mu.Lock()
	if err := s.admitLocked("goroutine", name); err != nil {
		s.mu.Unlock()
		return err
	}
	s.running++
	s.mu.Unlock()
	go func() {
		err := ErrGoexit
		defer func() { s.leave(name, err) }()
		err = protect(func() error { return f(&s.ctx) })
	}()
	return nil
}

// leave ends one of the scope's goroutines.
func (s *Scope) leave(name string, err error) {
	if err != nil {
		s.escaped(name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.running == 0 && s.idle != nil {
		close(s.idle)
	}
}

// protect turns a panic of f into an error. If f calls runtime.Goexit, protect
// doesn't return.
func protect(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
