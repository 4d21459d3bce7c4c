// Package pending implements what guests wait for: requests, timers and the ends of jobs. A waiting
// guest uses no processor time, and no goroutine other than its own, plus one per awaited job.
package pending

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// item is implemented by everything in this package that a guest may wait for.
type item interface {
	hostcall.Pending
	// ready reports whether the wait is over. Once true, it stays true.
	ready(now time.Time) bool
	// setBell sets the bell to ring when the item becomes ready, replacing any other.
	setBell(b *bell)
}

// Wait waits until an item of the list, all of this package, is ready and returns its index; -1 = ctx
// ended first. Items that are ready already count even if ctx has ended.
//
// Guests wait for thousands of items at a time, again and again after each that was ready. So Wait
// first looks for ready items, and waiting for one costs only a pointer.
func Wait(ctx context.Context, list []hostcall.Pending) int {
	if i, _ := look(list); i >= 0 || ctx.Err() != nil {
		return i
	}
	b := make(bell, 1)
	for _, p := range list {
		p.(item).setBell(&b)
	}
	for {
		i, next := look(list)
		if i >= 0 {
			return i
		}
		if !b.wait(ctx, next) {
			i, _ = look(list)
			return i
		}
	}
}

// look returns the index of a ready item, chosen at random with equal probability; -1 = none is, and
// next is the time of the first timer; zero = there is no timer.
func look(list []hostcall.Pending) (index int, next time.Time) {
	index = -1
	now, ready := time.Now(), 0
	for i := range list {
		if list[i].(item).ready(now) {
			if ready++; rand.IntN(ready) == 0 {
				index = i
			}
		} else if t, ok := list[i].(timer); ok && (next.IsZero() || t.at.Before(next)) {
			next = t.at
		}
	}
	return index, next
}

// bell wakes a waiting guest. It holds one ring.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default: // it rings already
	}
}

// wait returns when the bell has rung, or at a time, zero = never; false = ctx ended first.
func (b bell) wait(ctx context.Context, at time.Time) bool {
	var clock <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		clock = timer.C
	}
	select {
	case <-b:
		return true
	case <-clock:
		return true
	case <-ctx.Done():
		return false
	}
}

// promise is a result that is set once.
type promise[T any] struct {
	result op.Future[T]
	there  atomic.Bool          // the result is set
	bell   atomic.Pointer[bell] // to ring when it is set; nil = none
}

// set sets the result. Only the first call counts.
func (p *promise[T]) set(v T, err error) {
	p.result.Set(v, err)
	// In this order, as Wait does it the other way round: one of them sees the other.
	p.there.Store(true)
	if b := p.bell.Load(); b != nil {
		b.ring()
	}
}

// get waits for the result.
func (p *promise[T]) get(ctx context.Context) (T, error) { return op.Perform(ctx, p.result.Get()) }

func (p *promise[T]) ready(time.Time) bool { return p.there.Load() }
func (p *promise[T]) setBell(b *bell)      { p.bell.Store(b) }

// timer is ready from a point in time on.
type timer struct{ at time.Time }

// After returns a pending that is ready after a duration.
func After(d time.Duration) hostcall.Pending { return timer{time.Now().Add(d)} }

func (t timer) ready(now time.Time) bool { return !now.Before(t.at) }
func (timer) setBell(*bell)              {} // Wait has a clock

// Drop implements [hostcall.Pending].
func (timer) Drop() {}
