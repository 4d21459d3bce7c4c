package netproxy

import (
	"sync/atomic"
	"time"
)

// handoff keeps tasks for goroutines that call a handler and will be free soon. The handler of one response often begins
// the next request, and to wake another goroutine for that takes longer than to return. There are never more tasks than such
// goroutines, and those that nobody takes for one or two milliseconds are run by others: handlers may wait for what they have begun.
type handoff struct {
	tasks chan *Task
	run   func(*Task) // has another goroutine run a task
	taken atomic.Int64
	seen  atomic.Int64 // taken, when it was looked last
	armed atomic.Bool  // alarm is set
	alarm *time.Timer
}

// handoffTime is how often it is looked whether nobody has taken a task meanwhile.
const handoffTime = time.Millisecond

func (r *handoff) init(most int, run func(*Task)) {
	r.tasks, r.run = make(chan *Task, most), run
	r.alarm = time.AfterFunc(handoffTime, r.look)
	r.alarm.Stop()
}

// keep keeps a task if there is a goroutine for it besides those for the others.
func (r *handoff) keep(t *Task, busy *atomic.Int64) bool {
	if int64(len(r.tasks)) >= busy.Load() {
		return false
	}
	select {
	case r.tasks <- t:
	default:
		return false
	}
	if r.armed.CompareAndSwap(false, true) {
		r.seen.Store(r.taken.Load())
		r.alarm.Reset(handoffTime)
	}
	r.settle(busy)
	return true
}

// settle hands out what is kept for goroutines that have become free without seeing it: each counts as busy no more,
// and then looks.
func (r *handoff) settle(busy *atomic.Int64) {
	for int64(len(r.tasks)) > busy.Load() {
		if t := r.take(); t != nil {
			r.run(t)
		}
	}
}

// take returns a task that was kept; nil = there is none.
func (r *handoff) take() *Task {
	select {
	case t := <-r.tasks:
		r.taken.Add(1)
		return t
	default:
		return nil
	}
}

// look hands everything out if nobody has taken a task since it was looked last.
func (r *handoff) look() {
	if taken := r.taken.Load(); r.seen.Swap(taken) == taken {
		for t := r.take(); t != nil; t = r.take() {
			r.run(t)
		}
	}
	// In this order: who keeps one from now on sets the alarm, and what was kept before is seen.
	r.armed.Store(false)
	if len(r.tasks) > 0 && r.armed.CompareAndSwap(false, true) {
		r.alarm.Reset(handoffTime)
	}
}
