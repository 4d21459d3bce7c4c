package link

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// ErrStopped is the cause of a run's context when the host has stopped the run.
var ErrStopped = errors.New("the host has stopped the attempt")

// Run is one run of a task. It is safe for concurrent use.
type Run struct {
	// Task is what to run. It isn't modified.
	Task *protocol.Task
	// Deadline is when the host stops it; zero = never.
	Deadline time.Time

	id         uint64
	ctx        context.Context // of the run: passed to the program, and ends its calls
	stop       context.CancelCauseFunc
	out        *Sender[*protocol.WorkerFrame]
	pieces     Pieces
	cancelled  atomic.Bool
	cancelling chan struct{} // closed by cancel
	once       sync.Once     // of cancel
	onCancel   atomic.Pointer[func()]
	relieve    func() // makes a goroutine read from the host; nil = one already does

	mu    sync.Mutex // protects the rest
	calls map[uint32]chan *protocol.Answer
	last  uint32 // id of a call
}

// newRun returns a run. It must be notified when the stream ends: a context derived from the stream's would take a lock
// that all runs share.
func newRun(id uint64, task *protocol.Task, out *Sender[*protocol.WorkerFrame]) *Run {
	r := &Run{Task: task, id: id, out: out, cancelling: make(chan struct{})}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	if us := task.GetTimeoutUs(); us > 0 {
		r.Deadline = time.Now().Add(time.Duration(us) * time.Microsecond)
	}
	return r
}

// Call sends a call to the host and waits for the answer. It fails only when the
// run has been stopped or the stream has ended.
func (r *Run) Call(c *protocol.Call) (*protocol.Answer, error) {
	size := proto.Size(c)
	if refused := check(c, size); refused != 0 {
		return &protocol.Answer{Errno: refused}, nil
	}
	answer := make(chan *protocol.Answer, 1)
	r.mu.Lock()
	if r.calls == nil {
		r.calls = map[uint32]chan *protocol.Answer{}
	}
	r.last++
	if r.last == 0 { // which would mean that no answer is wanted
		r.last++
	}
	c.Id = r.last
	r.calls[c.GetId()] = answer
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.calls, c.GetId())
		r.mu.Unlock()
	}()
	if err := r.post(c, size); err != nil {
		return nil, err
	}
	if r.relieve != nil {
		r.relieve()
	}
	select {
	case a := <-answer:
		return a, nil
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
}

// Post sends a call to the host without waiting. Calls are handled in order. What the host would refuse
// to read is not sent.
func (r *Run) Post(c *protocol.Call) error {
	c.Id = 0
	size := proto.Size(c)
	if check(c, size) != 0 {
		return nil
	}
	return r.post(c, size)
}

func (r *Run) post(c *protocol.Call, size int) error {
	return r.out.Send(&protocol.WorkerFrame{Run: r.id, Frame: &protocol.WorkerFrame_Call{Call: c}}, size+frameBytes)
}

// Cancelled is closed when the job was cancelled: the run should end soon.
func (r *Run) Cancelled() <-chan struct{} { return r.cancelling }

// IsCancelled reports whether the job was cancelled.
func (r *Run) IsCancelled() bool { return r.cancelled.Load() }

// OnCancel sets a function to be called when the job is cancelled, or at once if it already was; it may be called
// twice. nil = none any more.
func (r *Run) OnCancel(tell func()) {
	if tell == nil {
		r.onCancel.Store(nil)
		return
	}
	// In this order, the reverse of that in cancel: at least one of them sees the other.
	r.onCancel.Store(&tell)
	if r.cancelled.Load() {
		tell()
	}
}

func (r *Run) cancel() {
	r.once.Do(func() {
		r.cancelled.Store(true)
		close(r.cancelling)
		if tell := r.onCancel.Load(); tell != nil {
			(*tell)()
		}
	})
}

// answer passes an answer to the waiting caller.
func (r *Run) answer(a *protocol.Answer) {
	r.mu.Lock()
	waiting := r.calls[a.GetCall()]
	delete(r.calls, a.GetCall())
	r.mu.Unlock()
	if waiting != nil {
		waiting <- a
	}
}

// abandon ends the run because the stream has ended.
func (r *Run) abandon() { r.stop(errEnded) }
