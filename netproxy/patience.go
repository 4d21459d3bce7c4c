package netproxy

import (
	"context"
	"sync"
	"time"

	"github.com/jobhost/jobhost/internal/canceled"
)

// patience is the context of one call of a handler. Few handlers use theirs, so
// it creates its timer on first use.
type patience struct {
	until time.Time
	once  sync.Once
	ctx   context.Context
	stop  context.CancelFunc
}

// begun returns the underlying context, which has the timer.
func (p *patience) begun() context.Context {
	p.once.Do(func() { p.ctx, p.stop = context.WithDeadline(context.Background(), p.until) })
	return p.ctx
}

// end is called when the handler has returned, and ends the context.
func (p *patience) end() {
	p.once.Do(func() { p.ctx, p.stop = canceled.Context(), func() {} })
	p.stop()
}

// Deadline implements [context.Context].
func (p *patience) Deadline() (time.Time, bool) { return p.until, true }

// Done implements [context.Context].
func (p *patience) Done() <-chan struct{} { return p.begun().Done() }

// Err implements [context.Context].
func (p *patience) Err() error { return p.begun().Err() }

// Value implements [context.Context].
func (*patience) Value(any) any { return nil }
