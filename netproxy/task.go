package netproxy

import (
	"bytes"
	"sync/atomic"
	"time"
)

// Task is a request with what is to be done about its end. It is enqueued once.
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
	next, prev *Task // of those that are pending; protected by the pool's mutex
}

// Bits of a task's flags. Bits are only added.
const (
	taskPending   = 1 << iota // it is a pool's
	taskClaimed               // its end is decided, and a handler is told; never with the next
	taskCancelled             // nobody is told
	taskRan                   // its request has ended
	taskDelivered             // its handler has returned
)

// NewTask returns a task. handler is told what becomes of the request; callback
// and args are for it.
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

// Started returns when its request was begun; zero = not yet.
func (t *Task) Started() time.Time { return timeOf(&t.start) }

// Completed returns when its request had ended; zero = not yet.
func (t *Task) Completed() time.Time { return timeOf(&t.end) }

func timeOf(nanos *atomic.Int64) time.Time {
	n := nanos.Load()
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// Cancel gives the task up: its request is cancelled where it is, and no handler
// is called. It reports whether it came in time; otherwise a handler is
// called, or was.
func (t *Task) Cancel() bool {
	if !t.decide(0, taskCancelled) {
		return false
	}
	t.abort()
	return true
}

// claim decides that a handler will be told, and reports whether it was this call
// that did.
func (t *Task) claim() bool { return t.decide(taskPending, taskClaimed) }

// decide adds a bit if the end of a task that has the needed bits is still open.
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

// isDelivering reports whether a handler is, or will be, told of the task's end.
func (t *Task) isDelivering() bool { return t.flags.Load()&(taskClaimed|taskDelivered) == taskClaimed }

// bind makes abort end a request.
func (t *Task) bind(life *lifetime) {
	t.life.Store(life)
	if t.flags.Load()&(taskClaimed|taskCancelled) != 0 {
		life.end(errCancelled)
	}
}

// abort cancels the request that is under way, or will be.
func (t *Task) abort() {
	if life := t.life.Load(); life != nil {
		life.end(errCancelled)
	}
}
