package pool

import "sync"

// Loan is a version that somebody besides the slots uses. The plugin stays open
// until it is given back.
type Loan struct {
	Version
	release func()
}

// Borrow lends the version of the moment; false = the pool is closed.
func (p *Pool) Borrow() (*Loan, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.current.Load()
	if v == nil {
		return nil, false
	}
	p.passLocked(nil, v)
	return &Loan{Version: v.Version, release: sync.OnceFunc(func() {
		p.mu.Lock()
		over := p.passLocked(v, nil)
		p.mu.Unlock()
		if over {
			p.free(v)
		}
	})}, true
}

// Release gives the version back; later calls do nothing.
func (l *Loan) Release() { l.release() }
