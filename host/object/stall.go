package object

import (
	"context"
	"errors"
	"time"
)

// Time limits for answers of a store. Slots wait for it, so a silent store must not look
// like a slow one.
const (
	answerWithin = 5 * time.Second // to a read; after that, some bytes must arrive within each such period
	// slowest is the minimum speed at which a store must accept bytes, in bytes per second.
	slowest = 256 << 10
	// mostInPart is how much a store may have buffered for one call.
	mostInPart = 8 << 20
	// late is when a call ended by its caller's deadline counts as the store's fault.
	late = time.Second
)

var errSilent = errors.New("the store didn't answer in time")

// stallTimer ends the context of an object if its store is silent during a call.
type stallTimer struct {
	caller context.Context // the context of the object
	ctx    context.Context // ends with caller, or because of silence
	cancel context.CancelCauseFunc
	timer  *time.Timer
	began  time.Time // when the call began
}

func newStallTimer(ctx context.Context) *stallTimer {
	p := &stallTimer{caller: ctx}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(answerWithin, p.expire)
	p.timer.Stop()
	return p
}

func (p *stallTimer) expire() { p.cancel(errSilent) }

// begin is called before a call that may take that long.
func (p *stallTimer) begin(within time.Duration) {
	p.began = time.Now()
	p.timer.Reset(within)
}

// end is called with the result of the call. gaveUp means that the caller ended it, which
// says nothing about the store; then the error is the caller's cause.
func (p *stallTimer) end(result error) (gaveUp bool, err error) {
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

// close ends the context.
func (p *stallTimer) close() {
	p.timer.Stop()
	p.cancel(context.Canceled)
}

// writeWithin is how long a store may take to accept bytes that are written at once.
func writeWithin(size int64) time.Duration {
	return answerWithin + time.Duration(min(size, mostInPart)/slowest)*time.Second
}
