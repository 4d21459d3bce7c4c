package pool

import "sync"

// Ref is a use of a version by something other than a slot. The plugin stays
// open until it is released.
type Ref struct {
	Version
	release func()
}

// Acquire returns the current version; false = the pool is closed.
func (p *Pool) Acquire() (*Ref, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.current.Load()
	if v == nil {
		return nil, false
	}
	p.passLocked(nil, v)
	return &Ref{Version: v.Version, release: sync.OnceFunc(func() {
		p.mu.Lock()
		over := p.passLocked(v, nil)
		p.mu.Unlock()
		if over {
			p.free(v)
		}
	})}, true
}

// Release ends the use of the version; later calls do nothing.
func (r *Ref) Release() { r.release() }
