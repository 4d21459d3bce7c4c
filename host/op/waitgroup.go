package op

import "sync"

// WaitGroup counts operations in progress, and waiting for zero is an op. Unlike
// that of package sync it may be reused at any time: all waiters are woken when the
// count reaches zero, whatever is added afterwards. The zero value is ready for
// use; a WaitGroup is safe for concurrent use and must not be copied.
type WaitGroup struct {
	mu      sync.Mutex // protects the fields below
	n       int
	waiters WaitList[struct{}]
}

// Add adds delta, which may be negative, to the count. It panics if the count
// becomes negative.
func (g *WaitGroup) Add(delta int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n+delta < 0 {
		panic("op: negative count of a wait group") //nolint:forbidigo // a fault of the program, as in package sync
	}
	if g.n += delta; g.n == 0 {
		g.waiters.CompleteAll(struct{}{}, nil)
	}
}

// Done decrements the count.
func (g *WaitGroup) Done() { g.Add(-1) }

// Count returns the count.
func (g *WaitGroup) Count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// Wait returns an op that is ready when the count is zero.
func (g *WaitGroup) Wait() Op[struct{}] {
	return New(
		func() (v struct{}, ok bool, err error) { return v, g.Count() == 0, nil },
		func(w *Waiter[struct{}]) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.n == 0 {
				w.Complete(struct{}{}, nil)
				return
			}
			g.waiters.Wait(w, &g.mu)
		},
	)
}
