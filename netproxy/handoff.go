package netproxy

import (
	"sync/atomic"
	"time"
)

// handoff keeps tasks for goroutines that are calling a handler and will be free soon. The handler of one response
// often begins the next request, and waking another goroutine for it takes longer than returning. There are never more
// tasks than such goroutines, and those not taken within one or two milliseconds are run by others: handlers may wait
// for requests that they have begun.
type handoff struct {
	tasks chan *Task
	run   func(*Task) // has another goroutine run a task
	taken atomic.Int64
	seen  atomic.Int64 // taken, at the last look
	armed atomic.Bool  // whether alarm is set
	alarm *time.Timer
}

// handoffTime is the interval at which look checks whether tasks are still being taken.
const handoffTime = time.Millisecond

func (r *handoff) init(most int, run func(*Task)) {
	r.tasks, r.run = make(chan *Task, most), run
	r.alarm = time.AfterFunc(handoffTime, r.look)
	r.alarm.Stop()
}

// keep keeps a task if there is a busy goroutine for it, not counting those that the tasks already kept will need.
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

// settle hands out tasks kept for goroutines that became free without noticing them: each first stops counting as
// busy, and then calls settle.
func (r *handoff) settle(busy *atomic.Int64) {
	for int64(len(r.tasks)) > busy.Load() {
		if t := r.take(); t != nil {
			r.run(t)
		}
	}
}

// take returns a kept task; nil = there is none.
func (r *handoff) take() *Task {
	select {
	case t := <-r.tasks:
		r.taken.Add(1)
		return t
	default:
		return nil
	}
}

// look hands out everything if no task has been taken since the last look.
func (r *handoff) look() {
	if taken := r.taken.Load(); r.seen.Swap(taken) == taken {
		for t := r.take(); t != nil; t = r.take() {
			r.run(t)
		}
	}
	// In this order: a call of keep from now on sets the alarm, and tasks kept before it are seen here.
	r.armed.Store(false)
	if len(r.tasks) > 0 && r.armed.CompareAndSwap(false, true) {
		r.alarm.Reset(handoffTime)
	}
}
