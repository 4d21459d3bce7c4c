package op

import "sync"

// Pulse notifies any number of readers that something has changed, without saying
// what: they look for themselves. It counts its beats, so that a reader who was
// busy doesn't miss the last one, and sees several as one. The zero value is ready
// for use; a Pulse is safe for concurrent use and must not be copied.
//
//	for seen := uint64(0); ; {
//		look()
//		if seen, err = op.Perform(ctx, pulse.Changed(seen)); err != nil {
//			return err
//		}
//	}
type Pulse struct {
	mu      sync.Mutex // protects the fields below
	beats   uint64
	closed  bool
	waiters WaitList[uint64] // all of these have seen the last beat
}

// Beat wakes all waiting readers, and returns the number of beats so far. It
// doesn't block. After Close it does nothing.
func (p *Pulse) Beat() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.beats++
		p.waiters.CompleteAll(p.beats, nil)
	}
	return p.beats
}

// Beats is the number of beats so far.
func (p *Pulse) Beats() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beats
}

// Changed returns an op that is ready when the number of beats differs from seen,
// and results in that number. If it equals seen and the pulse is closed, the op
// results in [ErrClosed].
func (p *Pulse) Changed(seen uint64) Op[uint64] {
	return New(
		func() (uint64, bool, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.changedLocked(seen)
		},
		func(w *Waiter[uint64]) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if n, ok, err := p.changedLocked(seen); ok {
				w.Complete(n, err)
				return
			}
			p.waiters.Wait(w, &p.mu)
		},
	)
}

func (p *Pulse) changedLocked(seen uint64) (beats uint64, ok bool, err error) {
	switch {
	case p.beats != seen:
		return p.beats, true, nil
	case p.closed:
		return p.beats, true, ErrClosed
	}
	return 0, false, nil
}

// Close says that there will be no more beats, and reports whether the pulse was
// open.
func (p *Pulse) Close() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.closed = true
	p.waiters.CompleteAll(p.beats, ErrClosed)
	return true
}
