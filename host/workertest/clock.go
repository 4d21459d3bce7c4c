package workertest

import (
	"context"
	"time"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// item is anything that the guest may wait for.
type item interface {
	hostcall.Pending
	// ready returns when it is or will be ready; false = never.
	ready() (time.Time, bool)
}

// timer is ready at a time.
type timer struct{ at time.Time }

func (t timer) ready() (time.Time, bool) { return t.at, true }
func (timer) Drop()                      {}

// now is the time in the case: that of the machine plus the skipped waits.
func (b *box) now() time.Time { return time.Now().Add(b.skipped) }

// skip advances the time, also of the attempt.
func (b *box) skip(d time.Duration) {
	b.skipped += d
	b.at.Deadline = b.at.Deadline.Add(-d)
}

// After implements [hostcall.Ops].
func (b *box) After(_ *hostcall.Attempt, d time.Duration) hostcall.Pending {
	return timer{b.now().Add(d)}
}

// Wait implements [hostcall.Ops] without waiting: the time of the case advances to
// when the first of the pending items is ready. Of several it is always the one
// that was ready first, so that a case is reproducible.
func (b *box) Wait(ctx context.Context, list []hostcall.Pending) int {
	first, when := -1, time.Time{}
	for i, p := range list {
		if at, ever := p.(item).ready(); ever && (first < 0 || at.Before(when)) {
			first, when = i, at
		}
	}
	wait := when.Sub(b.now())
	switch {
	case first >= 0 && wait <= 0:
		return first
	case ctx.Err() != nil:
		return -1
	}
	end, bounded := ctx.Deadline()
	left := time.Until(end)
	if first >= 0 && (!bounded || wait <= left) {
		b.skip(wait)
		return first
	}
	if bounded {
		b.skip(max(left, 0))
	}
	if !bounded || !time.Now().Before(b.at.Deadline) {
		b.expire(list, first >= 0)
	}
	return -1
}

// expire ends the attempt as if by its deadline.
func (b *box) expire(list []hostcall.Pending, ready bool) {
	if !b.deadlineNote {
		b.deadlineNote = true
		if ready {
			b.notef("it waited until its deadline for what comes later; timers and delays take no time here, but count")
		} else {
			b.notef("it waited until its deadline for what never comes: none of %d handles", len(list))
		}
	}
	b.stop(context.DeadlineExceeded)
}
