package op

import (
	"fmt"
	"sync"
)

// Semaphore has a number of permits that are acquired by ops, first come, first
// served. With one permit it is a mutex that can be combined with other ops. It is
// safe for concurrent use.
type Semaphore struct {
	mu      sync.Mutex // protects the fields below
	size    int
	free    int
	waiters WaitList[struct{}] // undecided ones only while free is 0
}

// NewSemaphore returns a semaphore with n permits, all of them free. It panics if
// n isn't positive.
func NewSemaphore(n int) *Semaphore {
	if n <= 0 {
		panic(fmt.Sprintf("op: semaphore with %d permits", n)) //nolint:forbidigo // a fault of the program, as in package sync
	}
	return &Semaphore{size: n, free: n}
}

// Acquire returns an op that takes a permit. If it loses, it has taken none. A
// permit must be given back with [Semaphore.Release].
func (s *Semaphore) Acquire() Op[struct{}] { return New(s.try, s.block) }

// Release passes a permit on to the longest waiter, or gives it back. It panics if
// none is taken.
func (s *Semaphore) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == s.size {
		panic("op: release of a semaphore of which no permit is taken") //nolint:forbidigo // a fault of the program, as in package sync
	}
	if !s.waiters.Complete(struct{}{}, nil) {
		s.free++
	}
}

// Free is the number of permits that aren't taken.
func (s *Semaphore) Free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

func (s *Semaphore) try() (v struct{}, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		return v, false, nil
	}
	s.free--
	return v, true, nil
}

func (s *Semaphore) block(w *Waiter[struct{}]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 { // released since try
		if w.Complete(struct{}{}, nil) {
			s.free--
		}
		return
	}
	s.waiters.Wait(w, &s.mu)
}
