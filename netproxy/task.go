package netproxy

import (
	"bytes"
	"sync/atomic"
	"time"
)

// Task is a request together with what to do with its result. It can be enqueued once.
type Task struct {
	request  *Request
	handler  Handler
	callback string
	args     []byte

	flags   atomic.Uint32            // see below
	life    atomic.Pointer[lifetime] // of its request; nil = not yet
	enqueue atomic.Int64             // times, in nanoseconds since 1970; 0 = not yet
	start   atomic.Int64
	end     atomic.Int64

	// The following are the pool's.
	room       room
	next, prev *Task // list of the pending ones; protected by the pool's mutex
}

// Bits of a task's flags. Bits are only added, never removed.
const (
	taskPending   = 1 << iota // it belongs to a pool
	taskClaimed               // its end is decided, and a handler will be called; never together with the next
	taskCancelled             // no handler will be called
	taskRan                   // its request has ended
	taskDelivered             // its handler has returned
)

// NewTask returns a task. handler is called with the result of the request;
// callback and args are for its use.
func NewTask(r *Request, handler Handler, callback string, args []byte) *Task {
	return &Task{request: r, handler: handler, callback: callback, args: bytes.Clone(args)}
}

// Request returns the task's request.
func (t *Task) Request() *Request { return t.request }

// Callback returns the name that the task was made with.
func (t *Task) Callback() string { return t.callback }

// Args returns a copy of the arguments that the task was made with.
func (t *Task) Args() []byte { return bytes.Clone(t.args) }

// Enqueued returns when the task was enqueued; zero = not yet.
func (t *Task) Enqueued() time.Time { return timeOf(&t.enqueue) }

// Started returns when its request began; zero = not yet.
func (t *Task) Started() time.Time { return timeOf(&t.start) }

// Completed returns when its request ended; zero = not yet.
func (t *Task) Completed() time.Time { return timeOf(&t.end) }

func timeOf(nanos *atomic.Int64) time.Time {
	n := nanos.Load()
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// Cancel gives the task up: its request is cancelled at whatever stage it is,
// and no handler is called. It reports whether it came in time; if not, a
// handler is or was called.
func (t *Task) Cancel() bool {
	if !t.decide(0, taskCancelled) {
		return false
	}
	t.abort()
	return true
}

// claim decides that a handler will be called, and reports whether this call made
// the decision.
func (t *Task) claim() bool { return t.decide(taskPending, taskClaimed) }

// decide adds a bit, if the task has the needed bits and its end is still undecided.
func (t *Task) decide(needed, bit uint32) bool {
	for {
		old := t.flags.Load()
		if old&needed != needed || old&(taskClaimed|taskCancelled) != 0 {
			return false
		}
		if t.flags.CompareAndSwap(old, old|bit) {
			return true
		}
	}
}

// ran notes that the request has ended, and reports whether the pool is done with
// the task.
func (t *Task) ran() bool {
	old := t.flags.Or(taskRan)
	return old&taskClaimed == 0 || old&taskDelivered != 0
}

// delivered notes that the handler has returned, and reports whether the pool is
// done with the task.
func (t *Task) delivered() bool { return t.flags.Or(taskDelivered)&taskRan != 0 }

// isDelivering reports whether a handler is being called, or will be.
func (t *Task) isDelivering() bool { return t.flags.Load()&(taskClaimed|taskDelivered) == taskClaimed }

// bind lets abort end a request.
func (t *Task) bind(life *lifetime) {
	t.life.Store(life)
	if t.flags.Load()&(taskClaimed|taskCancelled) != 0 {
		life.end(errCancelled)
	}
}

// abort cancels the request, now or when it begins.
func (t *Task) abort() {
	if life := t.life.Load(); life != nil {
		life.end(errCancelled)
	}
}
