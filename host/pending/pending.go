// Package pending has what guests wait for: requests, times and the ends of jobs.
// Whatever waits here takes no processor and no goroutine of its own but that of
// the guest.
package pending

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// item is everything of this package that a guest may wait for.
type item interface {
	hostcall.Pending
	// ready reports whether the guest need not wait any more. It stays so.
	ready(now time.Time) bool
	// tell has b rung when it becomes ready, and no other bell.
	tell(b *bell)
}

// Wait waits until one of the list, which are of this package, is ready and
// returns its index; -1 = ctx has ended before. What is ready already counts even
// if ctx has ended.
//
// Guests wait for thousands at a time, and anew after each that was ready. So
// what is ready is looked for first, and to wait for one costs a pointer.
func Wait(ctx context.Context, list []hostcall.Pending) int {
	if i, _ := look(list); i >= 0 || ctx.Err() != nil {
		return i
	}
	b := make(bell, 1)
	for _, p := range list {
		p.(item).tell(&b)
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

// look returns the index of one that is ready, each as likely as the others if several are; -1 = none
// is, and the first timer will be at next, zero = there is no timer.
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

// bell wakes who waits. It has room for one ring.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default: // it rings already
	}
}

// wait returns when the bell has rung, or at a time, zero = never; false = ctx has
// ended before.
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

// promise is a result that comes once.
type promise[T any] struct {
	result op.Future[T]
	there  atomic.Bool          // it is
	bell   atomic.Pointer[bell] // to ring then; nil = none
}

// set sets the result. Only the first one counts.
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
func (p *promise[T]) tell(b *bell)         { p.bell.Store(b) }

// timer is ready from a moment on.
type timer struct{ at time.Time }

// After returns something that is ready after a time.
func After(d time.Duration) hostcall.Pending { return timer{time.Now().Add(d)} }

func (t timer) ready(now time.Time) bool { return !now.Before(t.at) }
func (timer) tell(*bell)                 {} // who waits has a clock

// Drop implements [hostcall.Pending].
func (timer) Drop() {}
