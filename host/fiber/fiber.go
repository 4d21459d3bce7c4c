package fiber

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hub"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

// Fiber is a body's access to its fiber. It is safe for concurrent use, but
// input should have one receiver at a time if its order matters.
type Fiber struct {
	spec        jobhost.FiberSpec // with the defaults of Restart filled in
	body        Body
	onTerminate OnTerminate
	registry    *Registry
	createdAt   time.Time

	begun       op.Future[struct{}]       // it has its permit and runs, or the error why it never will
	ended       op.Future[*jobhost.Fiber] // after everything else; or the error why there never was a fiber
	interrupted op.Signal                 // it was interrupted

	// Protected by the registry's mu:
	starters int           // callers of Start waiting for begun
	place    *list.Element // in the list of fibers waiting for a permit; nil = not waiting
	permit   bool

	out atomic.Pointer[hub.Hub[jobhost.FiberOutput]] // nil until first used; created under mu

	mu          sync.Mutex // protects the fields below; taken before the hub's
	in          input
	runs        bool         // a run of the body is in progress
	waits       bool         // the body says that it is waiting for input
	paused      bool         // from outside
	killed      string       // failure code, once interrupted; empty = not interrupted
	ending      bool         // its exit is decided, without a restart
	run         *scope.Scope // of the body; nil = not running
	onInterrupt func()       // notifies the body of an interrupt; nil = no notification
	grace       *time.Timer
	startedAt   time.Time // of the last run
	restarts    restarts
	failure     *jobhost.Failure // of the last run
	over        error            // the error that ends subscriptions; nil = the hub is open
	end         *jobhost.Fiber   // nil until it has ended
}

// ID is the fiber's id.
func (f *Fiber) ID() string { return f.spec.ID }

// Spec is what the fiber was started with; it must not be changed.
func (f *Fiber) Spec() jobhost.FiberSpec { return f.spec }

// Restarts is the number of restarts so far.
func (f *Fiber) Restarts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.restarts.count
}

// Recv returns an op that results in the next message, or in [ErrInputClosed] if
// there will be no more. While something waits for it, the fiber is idle.
func (f *Fiber) Recv() op.Op[[]byte] { return op.New(f.take, f.await) }

// Take is Recv without waiting: it returns false and no error if there is
// nothing now. It is for guests; see [Fiber.Ring].
func (f *Fiber) Take() (message []byte, ok bool, err error) {
	message, ok, err = f.take()
	return message, ok && err == nil, err
}

func (f *Fiber) take() (message []byte, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	message, ok, err = f.in.peek()
	if ok {
		f.in.drop()
	}
	return message, ok, err
}

// await registers a receiver.
func (f *Fiber) await(w *op.Waiter[[]byte]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if message, ok, err := f.in.peek(); ok { // it arrived since take
		if w.Complete(message, err) {
			f.in.drop()
		}
		return
	}
	f.in.receivers.Wait(w, &f.mu)
}

// Ready reports whether Take would return something: a message or the end.
func (f *Fiber) Ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok, _ := f.in.peek()
	return ok
}

// Ring sets a bell to be called once when Take has something to return,
// immediately if it has. There is only one bell; nil removes it. It is called
// under locks, so it must be quick and not use the fiber.
func (f *Fiber) Ring(bell func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.in.bell = bell
	if _, ok, _ := f.in.peek(); ok {
		f.in.ring()
	}
}

// Waiting says whether the body is waiting for input, for bodies that don't use
// [Fiber.Recv]. Initially it isn't.
func (f *Fiber) Waiting(waits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits = waits
}

// Interrupted returns an op that is ready once the fiber was asked to end.
func (f *Fiber) Interrupted() op.Op[struct{}] { return f.interrupted.Wait() }

// OnInterrupt sets a function to be called when the fiber is asked to end,
// immediately if it was. There is only one; nil removes it, and after
// OnInterrupt has returned the previous one isn't being called any more. It is
// called under locks, so it must be quick and not use the fiber.
func (f *Fiber) OnInterrupt(tell func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onInterrupt = tell
	if tell != nil && f.killed != "" {
		tell()
	}
}

// Emit publishes a message, which must not be changed any more. It doesn't wait
// for readers. Errors: too_large, and [jobhost.ErrFiberEnded] after the end.
func (f *Fiber) Emit(message []byte) error {
	if len(message) > jobhost.MaxFiberMessage {
		return errTooLarge(len(message))
	}
	seq := f.hub().PublishFunc("", func(seq uint64) jobhost.FiberOutput {
		return jobhost.FiberOutput{Seq: seq, Time: time.Now().UTC(), Data: message}
	})
	if seq == 0 {
		return jobhost.ErrFiberEnded
	}
	return nil
}

// hub returns the fiber's hub. With many fibers most publish little, so it is
// created on first use.
func (f *Fiber) hub() *hub.Hub[jobhost.FiberOutput] {
	if h := f.out.Load(); h != nil {
		return h
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.out.Load(); h != nil {
		return h
	}
	cfg := &f.registry.cfg
	h := hub.NewSized(hub.Options{
		Replay: cfg.Replay, ReplayBytes: cfg.ReplayBytes, Buffer: cfg.Buffer, BufferBytes: cfg.BufferBytes, Budget: f.registry.unread,
		Slow: func() { cfg.Observe.Refused(LimitReader) },
	}, func(o jobhost.FiberOutput) int { return len(o.Data) })
	if f.over != nil {
		h.Close(f.over)
	}
	f.out.Store(h)
	return h
}

// closeHubLocked ends all present and future subscriptions, and returns how many
// messages were published.
func (f *Fiber) closeHubLocked(reason error) uint64 {
	f.over = reason
	h := f.out.Load()
	if h == nil {
		return 0
	}
	h.Close(reason)
	return h.Stats().Published
}

// now returns the current description of the fiber.
func (f *Fiber) now() jobhost.Fiber {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nowLocked()
}

func (f *Fiber) nowLocked() jobhost.Fiber {
	if f.end != nil {
		return *f.end
	}
	known := jobhost.Fiber{
		ID: f.spec.ID, Worker: f.spec.Worker, Entry: f.spec.Entry, Labels: f.spec.Labels,
		Status: f.statusLocked(), CreatedAt: f.createdAt, Restarts: f.restarts.count,
		Waiting: f.in.len(), Received: f.in.received, Failure: f.failure,
	}
	if !f.startedAt.IsZero() {
		at := f.startedAt
		known.StartedAt = &at
	}
	if h := f.out.Load(); h != nil {
		stats := h.Stats()
		known.Emitted, known.Subscribers = stats.Published, stats.Subscriptions
	}
	return known
}

func (f *Fiber) statusLocked() jobhost.FiberStatus {
	switch {
	case f.end != nil:
		return f.end.Status
	case f.paused:
		return jobhost.FiberPaused
	case !f.runs:
		return jobhost.FiberStarting
	case f.waits || f.in.receivers.Len() > 0:
		return jobhost.FiberIdle
	}
	return jobhost.FiberRunning
}
