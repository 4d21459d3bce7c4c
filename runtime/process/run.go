package process

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// run is one attempt in a process. The goroutine of the attempt does everything, including
// what the process asks for; only take is called by that of the stream.
type run struct {
	id     uint64
	child  *child
	at     *hostcall.Attempt
	timer  *time.Timer // for the deadline
	frames chan *protocol.WorkerFrame
	gone   chan struct{} // closed when no more frames are taken
	pieces link.Pieces
	// wake ends a wait because there is a frame; nil = nothing waits.
	wake      atomic.Pointer[context.CancelFunc]
	waits     []*waiting    // calls of the process for which nothing has been ready yet
	waitsFor  int           // handles of waits
	cancelled chan struct{} // has a value when the process should be notified that the job was cancelled
	notified  bool          // the waits at that time were answered

	ended atomic.Bool // the result has come, or never will

	held, partial int // bytes that the process has sent; protected by the mutex of child

	sending  atomic.Bool     // something is being sent to the process, which may not accept it
	mu       sync.Mutex      // protects the rest
	ctx      context.Context // of the attempt, once it has begun; its end and the deadline bound sending
	deadline time.Time
}

// maxFrames is how many unhandled frames of a run there may be; then the stream blocks.
const maxFrames = 8

// newRun returns a run with a stopped timer, which belongs to this run alone until it has ended.
func newRun(at *hostcall.Attempt, timer *time.Timer) *run {
	return &run{at: at, timer: timer, frames: make(chan *protocol.WorkerFrame, maxFrames), gone: make(chan struct{}), cancelled: make(chan struct{}, 1)}
}

// take hands a frame to the run; light means that it is known to be no larger than lightFrame. A process that sends
// faster than its frames are handled is blocked, with all of its runs.
func (r *run) take(f *protocol.WorkerFrame, light bool) error {
	if piece := f.GetPiece(); piece != nil {
		whole := &protocol.WorkerFrame{}
		ok, err := r.pieces.Add(piece, whole)
		if err == nil {
			err = r.child.gather(r, r.pieces.Size())
		}
		if err != nil || !ok {
			return err
		}
		f, light = whole, false
	}
	if f.GetResult() != nil {
		r.hasEnded()
	}
	if !light {
		if size := proto.Size(f); size > lightFrame && !r.child.hold(r, size) {
			return nil
		}
	}
	select {
	case r.frames <- f:
	case <-r.gone:
	}
	r.rouse()
	return nil
}

// took records that a frame was handled, which makes room for others.
func (r *run) took(f *protocol.WorkerFrame) {
	if size := proto.Size(f); size > lightFrame {
		r.child.letGo(r, size)
	}
}

// rouse ends a wait.
func (r *run) rouse() {
	if wake := r.wake.Load(); wake != nil {
		(*wake)()
	}
}

// send sends the process something about the run. If that fails the stream has ended, which is noticed elsewhere.
// It blocks on a process that doesn't read; see [child.overdue].
func (r *run) send(f *protocol.HostFrame) {
	f.Run = r.id
	r.sending.Store(true)
	size := frameBytes + len(f.GetAnswer().GetData()) + len(f.GetTask().GetInput())
	for name, value := range f.GetTask().GetLabels() {
		size += len(name) + len(value)
	}
	_ = r.child.out.Send(f, size)
	r.sending.Store(false)
}

// cancel has the process notified that the job was cancelled, without blocking the caller until the process accepts
// that.
func (r *run) cancel() {
	select {
	case r.cancelled <- struct{}{}:
	default: // it is about to be notified
	}
	r.rouse()
}

// overdue reports whether the attempt can't end, since the process doesn't accept what is sent to it, although its
// time was over a while ago.
func (r *run) overdue() bool {
	if !r.sending.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ctx != nil && (r.ctx.Err() != nil || !r.deadline.IsZero() && time.Since(r.deadline) > stopTime)
}

// frameBytes is roughly what a frame costs besides payloads and answers.
const frameBytes = 256

// stopTime is how long a process may continue an attempt that it was asked to end. Sandboxes
// notice a deadline on their own, some milliseconds after it.
const stopTime = time.Second

// ending is how a run came to its end.
type ending int

const (
	byResult   ending = iota // the process reported how it ended
	byDeadline               // it had to be stopped at the deadline
	byContext                // it had to be stopped because the context ended
	byDeath                  // the process died
)

// do runs the attempt to its end.
func (r *run) do(ctx context.Context, task *protocol.Task) (*protocol.Result, ending) {
	r.mu.Lock()
	r.ctx, r.deadline = ctx, r.at.Deadline
	r.mu.Unlock()
	r.at.OnCancel(r.cancel)
	defer r.at.OnCancel(nil)
	if result := r.begin(task); result != nil {
		return result, byResult
	}
	var late <-chan time.Time
	if !r.at.Deadline.IsZero() {
		r.timer.Reset(time.Until(r.at.Deadline))
		defer r.timer.Stop()
		late = r.timer.C
	}
	for {
		r.waitAll(ctx)
		select {
		case f := <-r.frames:
			if result := f.GetResult(); result != nil {
				return result, byResult
			}
			r.answer(ctx, f.GetCall())
			r.took(f)
		case <-r.cancelled:
			r.send(&protocol.HostFrame{Frame: &protocol.HostFrame_Cancel{Cancel: &protocol.Cancel{}}})
		case <-r.child.life.Done():
			return r.last(r.endedBy(ctx))
		case <-late:
			return r.stop(byDeadline)
		case <-ctx.Done():
			return r.stop(byContext)
		}
	}
}

// begin sends the task, and returns the result if that arrives at once.
func (r *run) begin(task *protocol.Task) *protocol.Result {
	c := r.child
	task.Alone = c.reading.begin() && c.pipes != nil
	if task.GetAlone() {
		c.unread.Store(true)
	}
	r.send(&protocol.HostFrame{Frame: &protocol.HostFrame_Task{Task: task}})
	if task.GetAlone() {
		if result := c.look(r); result != nil {
			r.hasEnded()
			if c.reading.due.Load() > 0 { // another has begun in the meantime, and no goroutine reads
				c.reading.wake()
			}
			return result
		}
	}
	c.reading.wake()
	return nil
}

// hasEnded records that no result is expected any more.
func (r *run) hasEnded() {
	if r.ended.CompareAndSwap(false, true) {
		r.child.unread.Store(false)
		r.child.reading.end()
	}
}

// endedBy returns why a process has died that may have been killed because it no longer read.
func (r *run) endedBy(ctx context.Context) ending {
	switch {
	case r.child.killedFor() != r.id:
		return byDeath
	case ctx.Err() != nil:
		return byContext
	}
	return byDeadline
}

// stop asks the process to end the attempt, and kills the process if it doesn't.
func (r *run) stop(why ending) (*protocol.Result, ending) {
	r.send(&protocol.HostFrame{Frame: &protocol.HostFrame_Stop{Stop: &protocol.Stop{}}})
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	for {
		select {
		case f := <-r.frames:
			if result := f.GetResult(); result != nil {
				return result, why
			}
			r.refuse(f.GetCall())
			r.took(f)
		case <-r.child.life.Done():
			return r.last(why)
		case <-timer.C:
			r.child.killFor(r)
			return nil, why
		}
	}
}

// last checks whether the process reported how the run ended before it died.
func (r *run) last(why ending) (*protocol.Result, ending) {
	for {
		select {
		case f := <-r.frames:
			if result := f.GetResult(); result != nil {
				return result, why
			}
		default:
			return nil, why
		}
	}
}

// taskOf describes an attempt.
func taskOf(at *hostcall.Attempt) *protocol.Task {
	t := &protocol.Task{
		Job: at.Job, Worker: at.Worker, Index: int32(at.Task), Tasks: int32(at.Tasks), Attempt: int32(at.Number),
		Priority: at.Priority.String(), Labels: at.Labels, Trace: at.Trace, Entry: valid(at.Entry),
		InputBytes: at.InputSize(), LogLevel: int32(at.Limits.LogLevel), OutputLimit: int64(at.Limits.OutputBytes),
	}
	if at.LargeInput == 0 && len(at.Input) <= maxInput {
		t.Input = at.Input
	}
	if !at.Deadline.IsZero() {
		t.TimeoutUs = max(time.Until(at.Deadline).Microseconds(), 1)
	}
	return t
}

// maxInput is the largest payload that is sent with its task; others are requested.
const maxInput = 1 << 20

// resultOf turns the way a run ended into the engine's result.
func (r *run) resultOf(ctx context.Context, result *protocol.Result, why ending) runtime.Result {
	out := runtime.Result{}
	if s := result.GetSandbox(); s != nil {
		out.Replace = reason(s.GetReplace())
		out.Reset = time.Duration(max(s.GetResetNs(), 0))
		out.MemoryRefused = s.GetMemoryRefused()
	}
	out.Outcome = r.outcome(ctx, result, why)
	out.Outcome.Fuel = max(result.GetSandbox().GetFuel(), 0)
	return out
}
