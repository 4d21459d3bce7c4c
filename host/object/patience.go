package object

import (
	"context"
	"errors"
	"time"
)

// How long a store may take for an answer. A slot waits for it, so one that is silent
// must not look like one that is slow.
const (
	answerWithin = 5 * time.Second // to a read; then bytes must come, some within each such time
	// slowest is how fast a store must at least take bytes, in bytes per second.
	slowest = 256 << 10
	// mostInPart is how much a store may have gathered for one call.
	mostInPart = 8 << 20
	// late is after which time a call that its caller's deadline ends was the store's fault.
	late = time.Second
)

var errSilent = errors.New("the store didn't answer in time")

// patience ends the context of an object when its store is silent during a call.
type patience struct {
	caller context.Context // of the object
	ctx    context.Context // ends with it, or by silence
	cancel context.CancelCauseFunc
	timer  *time.Timer
	began  time.Time // of the call
}

func newPatience(ctx context.Context) *patience {
	p := &patience{caller: ctx}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(answerWithin, p.lose)
	p.timer.Stop()
	return p
}

func (p *patience) lose() { p.cancel(errSilent) }

// begin is called before a call that may take so long.
func (p *patience) begin(within time.Duration) {
	p.began = time.Now()
	p.timer.Reset(within)
}

// end is called with what the call came to. gaveUp says that the caller has ended it,
// which says nothing of the store; the error is the caller's cause then.
func (p *patience) end(result error) (gaveUp bool, err error) {
	p.timer.Stop()
	switch {
	case result == nil:
		return false, nil
	case p.caller.Err() == nil && p.ctx.Err() != nil:
		return false, errSilent
	case p.caller.Err() == nil:
		return false, result
	case errors.Is(context.Cause(p.caller), context.DeadlineExceeded) && time.Since(p.began) >= late:
		return false, errSilent
	}
	return true, context.Cause(p.caller)
}

// close ends the patience and its context.
func (p *patience) close() {
	p.timer.Stop()
	p.cancel(context.Canceled)
}

// writeWithin is how long a store may take for bytes that are given to it at once.
func writeWithin(size int64) time.Duration {
	return answerWithin + time.Duration(min(size, mostInPart)/slowest)*time.Second
}
