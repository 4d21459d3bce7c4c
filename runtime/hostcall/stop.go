package hostcall

import (
	"context"
	"errors"
	"time"

	"github.com/jobhost/jobhost"
)

// The causes that a host uses to end the context of a run; see
// [Attempt.Stopped]. Any other cause counts as ErrReturned.
var (
	// ErrCancelled: the job was cancelled and the grace period is over.
	ErrCancelled = errors.New("the job was cancelled")
	// ErrReturned: the host takes the attempt back, as in a shutdown.
	ErrReturned = errors.New("the attempt was taken back")
)

// Results of Remaining that are not a time.
const (
	NoDeadline = -1
	Stopping   = int64(ErrStopped)
)

// Cancel asks the guest to end: from now on Remaining returns [Stopping], and a
// waiting call returns. It does not stop a guest that doesn't check; ending the
// context of the run does. It may be called from any goroutine, until the
// attempt is reset.
func (a *Attempt) Cancel() {
	a.cancelled.Store(true)
	if wake := a.waits.Load(); wake != nil {
		(*wake)()
	}
	if tell := a.onCancel.Load(); tell != nil {
		(*tell)()
	}
}

// OnCancel sets a function to be called by [Attempt.Cancel], or at once if that has been called
// already; nil = none any more. It may be called twice.
func (a *Attempt) OnCancel(tell func()) {
	if tell == nil {
		a.onCancel.Store(nil)
		return
	}
	// In this order, the reverse of that in Cancel: at least one of them sees the other.
	a.onCancel.Store(&tell)
	if a.cancelled.Load() {
		tell()
	}
}

// Cancelled reports whether the attempt was cancelled.
func (a *Attempt) Cancelled() bool { return a.cancelled.Load() }

// Over reports whether the attempt is past its deadline, or the context of its
// run has ended.
func (a *Attempt) Over(ctx context.Context) bool {
	return ctx.Err() != nil || !a.Deadline.IsZero() && time.Until(a.Deadline) <= 0
}

// Remaining returns the milliseconds left until the deadline, [NoDeadline]
// when there is none, or [Stopping] once the attempt is cancelled or its
// deadline has passed.
func (a *Attempt) Remaining() int64 {
	if a.cancelled.Load() {
		return Stopping
	}
	if a.Deadline.IsZero() {
		return NoDeadline
	}
	left := time.Until(a.Deadline)
	if left <= 0 {
		return Stopping
	}
	// Rounded up, so that 0 never means "some time left".
	return int64((left + time.Millisecond - 1) / time.Millisecond)
}

// Stopped returns the outcome of an attempt that was stopped because the
// context of its run ended: cancelled for [ErrCancelled], a timeout for
// [context.DeadlineExceeded], returned for everything else.
func (a *Attempt) Stopped(ctx context.Context) jobhost.Outcome {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrCancelled):
		return jobhost.Outcome{Kind: jobhost.OutcomeCancelled}
	case errors.Is(cause, context.DeadlineExceeded):
		return a.TimedOut()
	}
	return jobhost.Outcome{Kind: jobhost.OutcomeReturned}
}

// TimedOut returns the outcome of an attempt that was stopped at its deadline.
func (a *Attempt) TimedOut() jobhost.Outcome {
	return a.Failure(jobhost.FailTimeout, jobhost.CategoryTimeout, "the attempt ran until its deadline and was stopped")
}
