package pool

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Version is what the slots of a pool run: a plugin with what its attempts are
// given.
type Version struct {
	Plugin runtime.Plugin
	// Place is where it runs, and Apart where tasks run that may have ended a host; nil =
	// where the others do.
	Place journal.Place
	Apart Apart
	Size  int // slots to begin with, at least 1
	// Config, Secrets and Limits are what each attempt is given.
	Config, Secrets map[string]string
	Limits          hostcall.Limits
	// MaySubmit are the workers that attempts may submit jobs to.
	MaySubmit []string
	// MayWatch are the workers whose jobs' states attempts may see.
	MayWatch []string
	// HTTP sends what attempts request; nil = they may request nothing. It
	// runs, and is stopped with the version.
	HTTP netproxy.Pool
	// KVQuota bounds what the worker's keys and values cost together; 0 = no bound.
	KVQuota int64
}

// version is a Version in use.
type version struct {
	Version
	holders int // slots with a sandbox of it; the pool's mu protects it
	// taking is for slots that wait for a task.
	taking atomic.Pointer[round]
}

// round is a time in which the version and the number of slots stay as they
// are. It ends with them, and with the worker's scope, so that slots which wait
// for a task look up.
type round struct {
	ctx context.Context
	end context.CancelCauseFunc
}

// errReplaced is the cause of the end of a round.
var errReplaced = errors.New("another version or number of slots")

func newVersion(ctx context.Context, v Version) *version {
	made := &version{Version: v}
	made.begin(ctx)
	return made
}

// begin begins a round.
func (v *version) begin(ctx context.Context) {
	ctx, end := context.WithCancelCause(ctx)
	v.taking.Store(&round{ctx, end})
}

// end ends the round.
func (v *version) end() { v.taking.Load().end(errReplaced) }

// turn gives slot i the current version in place of the one that it holds,
// which may be nil, and reports whether there is a place for the slot. A slot
// without one holds nothing and must end.
func (p *Pool) turn(i int, held *version) (*version, bool) {
	p.mu.Lock()
	next := p.current.Load()
	if next != nil && int64(i) >= p.size.Load() {
		next = nil
	}
	over := p.passLocked(held, next)
	if next == nil {
		p.endLocked(i)
	}
	p.mu.Unlock()
	if over {
		p.free(held)
	}
	return next, next != nil
}

// release takes a slot that ends off the list, with what it held.
func (p *Pool) release(i int, held *version) {
	p.mu.Lock()
	over := p.passLocked(held, nil)
	p.endLocked(i)
	p.mu.Unlock()
	if over {
		p.free(held)
	}
}

// endLocked notes the end of a slot.
func (p *Pool) endLocked(i int) {
	p.live[i] = false
	p.alive--
	if p.alive == 0 && p.current.Load() == nil {
		close(p.ended)
	}
}

// adopt gives a slot that has taken a task the current version, or leaves it
// the one that it holds if there is none any more.
func (p *Pool) adopt(held *version) *version {
	p.mu.Lock()
	next := p.current.Load()
	if next == nil {
		next = held
	}
	over := p.passLocked(held, next)
	p.mu.Unlock()
	if over {
		p.free(held)
	}
	return next
}

// passLocked notes that a slot holds next in place of held, and reports
// whether held is to be freed: it was replaced and nobody holds it.
func (p *Pool) passLocked(held, next *version) (over bool) {
	if held == next {
		return false
	}
	if next != nil {
		next.holders++
	}
	if held == nil {
		return false
	}
	held.holders--
	return held.holders == 0 && held != p.current.Load()
}
