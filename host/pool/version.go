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

// Version is what the slots of a pool run: a plugin with the settings of its attempts.
type Version struct {
	Plugin runtime.Plugin
	// Place is where it runs, and Apart where tasks run that may have crashed a host; nil
	// = in the same place.
	Place journal.Place
	Apart Apart
	Size  int // initial number of slots, at least 1
	// Config, Secrets and Limits apply to each attempt.
	Config, Secrets map[string]string
	Limits          hostcall.Limits
	// MaySubmit are the workers that attempts may submit jobs to.
	MaySubmit []string
	// MayWatch are the workers whose jobs' states attempts may see.
	MayWatch []string
	// HTTP sends the requests of attempts; nil = they may send none. It is running, and
	// is stopped with the version.
	HTTP netproxy.Pool
	// KVQuota bounds the total cost of the worker's keys and values; 0 = no bound.
	KVQuota int64
}

// version is a Version in use.
type version struct {
	Version
	holders int // slots with a sandbox of it, and references; the pool's mu protects it
	// taking is the round of slots that are waiting for a task.
	taking atomic.Pointer[round]
}

// round is a period in which neither the version nor the number of slots changes. It ends
// when they do, or with the worker's scope, so that waiting slots notice.
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

// switchVersion gives slot i the current version in place of the one that it holds, which may be
// nil, and reports whether the slot is still wanted. If not, it holds nothing and must
// end.
func (p *Pool) switchVersion(i int, held *version) (*version, bool) {
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

// release removes a slot that ends, with what it held.
func (p *Pool) release(i int, held *version) {
	p.mu.Lock()
	over := p.passLocked(held, nil)
	p.endLocked(i)
	p.mu.Unlock()
	if over {
		p.free(held)
	}
}

// endLocked records the end of a slot.
func (p *Pool) endLocked(i int) {
	p.live[i] = false
	p.alive--
	if p.alive == 0 && p.current.Load() == nil {
		close(p.ended)
	}
}

// adopt gives a slot that has taken a task the current version, or leaves it the one that
// it holds if there is none any more.
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

// passLocked records that a slot or reference holds next in place of held, and reports
// whether held must be freed: it was replaced and has no holders.
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
