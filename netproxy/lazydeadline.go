package netproxy

import (
	"context"
	"sync"
	"time"

	"github.com/jobhost/jobhost/internal/canceled"
)

// lazyDeadline is the context of one call of a handler. Few handlers use theirs, so
// it creates its timer on first use.
type lazyDeadline struct {
	until time.Time
	once  sync.Once
	ctx   context.Context
	stop  context.CancelFunc
}

// begun returns the underlying context, which has the timer.
func (p *lazyDeadline) begun() context.Context {
	p.once.Do(func() { p.ctx, p.stop = context.WithDeadline(context.Background(), p.until) })
	return p.ctx
}

// end is called when the handler has returned, and ends the context.
func (p *lazyDeadline) end() {
	p.once.Do(func() { p.ctx, p.stop = canceled.Context(), func() {} })
	p.stop()
}

// Deadline implements [context.Context].
func (p *lazyDeadline) Deadline() (time.Time, bool) { return p.until, true }

// Done implements [context.Context].
func (p *lazyDeadline) Done() <-chan struct{} { return p.begun().Done() }

// Err implements [context.Context].
func (p *lazyDeadline) Err() error { return p.begun().Err() }

// Value implements [context.Context].
func (*lazyDeadline) Value(any) any { return nil }
