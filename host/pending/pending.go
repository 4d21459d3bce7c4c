// Package pending has what guests wait for: requests, times and the ends of jobs.
//
// An attempt may have thousands of them and waits for one after the other, so
// that a wait must not cost much for each of the others. They share a bell: what
// becomes ready says so in itself and rings, and whoever waits looks at all again.
package pending

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Waits are those of one sandbox: one goroutine begins them and waits.
type Waits struct {
	bell  chan struct{} // holds a token when something may have become ready
	timer *time.Timer   // rings at the next time; nil = no time was waited for yet
}

// New returns the waits of a sandbox.
func New() *Waits { return &Waits{bell: make(chan struct{}, 1)} }

// ring lets whoever waits look again.
func (w *Waits) ring() {
	select {
	case w.bell <- struct{}{}:
	default: // somebody has rung, and nobody has looked since
	}
}

// item is everything of this package that a guest may wait for.
type item interface {
	hostcall.Pending
	// ready reports whether the guest need not wait any more. What is ready stays so.
	ready() bool
	// due is when it becomes ready by itself; zero = it rings.
	due() time.Time
}

// Wait waits until one of the list, which are of w, is ready and returns its
// index; -1 = ctx has ended before. What is ready already counts even if ctx has
// ended.
func (w *Waits) Wait(ctx context.Context, list []hostcall.Pending) int {
	start := rand.IntN(max(len(list), 1)) //nolint:gosec // a place to begin is no secret
	for {
		i, next := look(list, start)
		if i >= 0 {
			return i
		}
		if !next.IsZero() {
			w.ringAt(next)
		}
		select {
		case <-w.bell:
		case <-ctx.Done():
			return -1
		}
	}
}

// look returns the index of something that is ready, or -1 and when something
// will be by itself; zero = nothing will.
func look(list []hostcall.Pending, start int) (i int, next time.Time) {
	for k := range list {
		i := (start + k) % len(list)
		one := list[i].(item)
		if one.ready() {
			return i, time.Time{}
		}
		if due := one.due(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return -1, next
}

// ringAt rings at a time, in place of an earlier one that was asked for.
func (w *Waits) ringAt(t time.Time) {
	if w.timer == nil {
		w.timer = time.AfterFunc(time.Until(t), w.ring)
		return
	}
	w.timer.Reset(time.Until(t))
}

// End stops the timer, when the sandbox is not used any more.
func (w *Waits) End() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// timer is ready from a moment on.
type timer struct{ at time.Time }

// After returns something that is ready after a time.
func (w *Waits) After(d time.Duration) hostcall.Pending { return timer{time.Now().Add(d)} }

func (t timer) ready() bool    { return !time.Now().Before(t.at) }
func (t timer) due() time.Time { return t.at }

// Drop implements [hostcall.Pending].
func (timer) Drop() {}

// event is something that happens once.
type event struct {
	waits *Waits
	done  atomic.Bool // set last
}

func (e *event) ready() bool  { return e.done.Load() }
func (*event) due() time.Time { return time.Time{} }

// happen makes it ready; the caller has set before what came of it.
func (e *event) happen() {
	e.done.Store(true)
	e.waits.ring()
}
