package hostcall

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/canceled"
)

// Ops is an optional ability of [Services]: to wait for several things at once.
type Ops interface {
	// After returns a Pending that is ready after a time.
	After(at *Attempt, d time.Duration) Pending
	// Await returns a Pending that is ready when a job has ended.
	Await(at *Attempt, job string) (Ending, error)
	// Wait waits until one of the pending is ready and returns its index, or -1
	// when ctx ends; what is already ready counts even if ctx has ended. They
	// are from this same Services. When several are ready it picks one at
	// random, so that none can starve another.
	Wait(ctx context.Context, pending []Pending) int
}

// Pending is something that a guest may wait for. It is not safe for concurrent use.
type Pending interface {
	// Drop gives it up: what is in progress is stopped.
	Drop()
}

// Ending is the end of a job that is being waited for.
type Ending interface {
	Pending
	// Message returns a [jobhost.Ended] as JSON, once the job has ended. ctx
	// bounds the access to the store.
	Message(ctx context.Context) ([]byte, error)
}

// Bounds of what an attempt waits for.
const (
	maxHandles = 4096
	MaxWait    = maxHandles // handles in one call
	maxUnread  = 8 << 20    // bytes of unread messages about children, without the last message
	// firstHandle is the number of the first handle. Smaller numbers are the
	// children's: see [Attempt.Submit].
	firstHandle = 1 << 20
)

// ops are the handles of an attempt.
type ops struct {
	handles  []*handle // by number, from firstHandle; nil = dropped
	children []*handle // by number, from 1; nil = not waited for
	held     int       // handles that are not nil
	open     int       // requests that are open
	requests int       // requests sent or deferred since the last message to a fiber
	number   int       // requests in total
	free     []int32   // positions in handles that may be reused
	moved    int64     // bytes of bodies, in both directions
	unread   int       // bytes of messages about children not read yet
	notified bool      // the guest knows that the attempt is cancelled
	streams  int       // streams among the handles
	inbox    int32     // the handle of a fiber's inbox; 0 = not requested

	pending []Pending // for Wait, which would otherwise allocate it each time
}

// handle is one pending thing and how far its message has been read.
type handle struct {
	pending Pending // nil = its message was taken
	request bool    // it counts as an open HTTP request
	taken   bool    // its message has been fetched
	child   bool    // and counts as unread
	stream  bool    // of many messages: pending stays, and taken is about the current one
	message []byte
}

// keep gives a handle a number; there are fewer than maxHandles. Numbers of dropped
// handles are reused only when there are that many, which fibers need.
func (a *Attempt) keep(h *handle) int32 {
	o := &a.ops
	o.held++
	if last := len(o.free) - 1; last >= 0 && len(o.handles) >= maxHandles {
		i := o.free[last]
		o.free, o.handles[i] = o.free[:last], h
		return firstHandle + i
	}
	o.handles = append(o.handles, h)
	return firstHandle + int32(len(o.handles)) - 1
}

// place returns where the handle of a number is stored; nil = the number is out of range.
func (o *ops) place(number int32) **handle {
	switch i := int(number) - firstHandle; {
	case i >= 0 && i < len(o.handles):
		return &o.handles[i]
	case number >= 1 && int(number) <= len(o.children):
		return &o.children[number-1]
	}
	return nil
}

// waiting returns the Ops and the handle of a number; that of a child is made
// when it is first used.
func (a *Attempt) waiting(number int32) (Ops, *handle, Errno) {
	o, ok := a.Services.(Ops)
	if !ok {
		return nil, nil, ErrDenied
	}
	if at := a.ops.place(number); at != nil && *at != nil {
		return o, *at, OK
	}
	if number < 1 || int(number) > len(a.submitted) || a.submitted[number-1].when != SubmitNow {
		return o, nil, ErrInvalid // a job that is submitted on success can't be waited for
	}
	pending, err := o.Await(a, a.submitted[number-1].id)
	if err != nil {
		a.Log(LevelWarn, []byte("wait: "+err.Error()))
		return o, nil, ErrnoOf(err)
	}
	for len(a.ops.children) < len(a.submitted) {
		a.ops.children = append(a.ops.children, nil)
	}
	h := &handle{pending: pending}
	a.ops.children[number-1] = h
	a.ops.held++
	return o, h, OK
}

// Timer returns a handle that is ready after ms milliseconds.
func (a *Attempt) Timer(ms int64) (int32, Errno) {
	if far := a.far(); far != nil {
		return far.Timer(ms)
	}
	o, ok := a.Services.(Ops)
	switch {
	case !ok:
		return 0, ErrDenied
	case ms < 0 || ms > int64(jobhost.MaxDelay/time.Millisecond):
		return 0, ErrInvalid
	case a.ops.held >= maxHandles:
		return 0, ErrLimit
	}
	return a.keep(&handle{pending: o.After(a, time.Duration(ms)*time.Millisecond)}), OK
}

// NoTimeout is the timeout of a [Attempt.Wait] without one.
const NoTimeout = -1

// Wait waits until one of the handles is ready and returns its index, for at most timeout
// milliseconds; 0 = only check. It returns [ErrNotFound] when none was ready in time,
// [ErrInvalid] for a number that is not a handle, and [ErrStopped] when the attempt is past its
// deadline, and once when it is cancelled, so that the guest notices; after that the guest may
// continue to wait while it shuts down.
func (a *Attempt) Wait(ctx context.Context, numbers []int32, timeout int64) (int32, Errno) {
	if len(numbers) == 0 || len(numbers) > MaxWait || timeout < NoTimeout {
		return 0, ErrInvalid
	}
	if far := a.far(); far != nil {
		return far.Wait(ctx, numbers, timeout)
	}
	pending, taken := a.ops.pending[:0], -1
	var o Ops
	for i, number := range numbers {
		var h *handle
		var e Errno
		if o, h, e = a.waiting(number); e != OK {
			return 0, e
		}
		if h.taken {
			taken = i
		}
		pending = append(pending, h.pending)
	}
	a.ops.pending = pending
	defer clear(pending) // so that nothing dropped is retained
	if a.cancelled.Load() && !a.ops.notified {
		return 0, a.stopped()
	}
	if taken >= 0 {
		return int32(taken), OK // the rest of it can be read, if only its end
	}
	// Most find something ready, and need no context with a deadline.
	if i := o.Wait(canceled.Context(), pending); i >= 0 || timeout == 0 {
		return found(i)
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	limited := ctx
	if timeout != NoTimeout {
		var end context.CancelFunc
		limited, end = context.WithTimeout(ctx, time.Duration(min(timeout, int64(jobhost.MaxDelay/time.Millisecond)))*time.Millisecond)
		defer end()
	}
	i := o.Wait(limited, pending)
	if i < 0 && ctx.Err() != nil {
		return 0, a.stopped()
	}
	return found(i)
}

// found is the answer to a wait that has not been stopped.
func found(i int) (int32, Errno) {
	if i < 0 {
		return 0, ErrNotFound
	}
	return int32(i), OK
}

// stopped is the result of a call whose wait was ended.
func (a *Attempt) stopped() Errno {
	a.ops.notified = a.cancelled.Load()
	return ErrStopped
}

// Read copies the next part of a handle's message to buf and returns its length,
// 0 = the message ends here. It waits until there is a message; that of a timer
// is empty. With an empty buf it returns how much is left. Its errors are those
// of [Attempt.Wait].
func (a *Attempt) Read(ctx context.Context, number int32, buf []byte) (int, Errno) {
	if far := a.far(); far != nil {
		return far.Read(ctx, number, buf)
	}
	o, h, e := a.waiting(number)
	if e != OK {
		return 0, e
	}
	if h.stream {
		return a.readStream(ctx, o, h, buf)
	}
	if !h.taken {
		if e := a.take(ctx, o, h); e != OK {
			return 0, e
		}
	}
	if len(buf) == 0 {
		return len(h.message), OK
	}
	n := copy(buf, h.message)
	a.wasRead(h, n)
	if h.message = h.message[n:]; len(h.message) == 0 {
		h.message = nil // to release its memory
	}
	return n, OK
}

// take waits for a handle and fetches its message.
func (a *Attempt) take(ctx context.Context, o Ops, h *handle) Errno {
	if e := a.await(ctx, o, h.pending); e != OK {
		return e
	}
	switch p := h.pending.(type) {
	case Exchange:
		h.message = messageOf(p.Response(ctx))
		a.ops.open--
		a.ops.moved += int64(len(h.message))
		h.request = false
	case Ending:
		if a.ops.unread > maxUnread {
			a.Log(LevelWarn, []byte("read: read or drop the messages about other jobs first"))
			return ErrLimit
		}
		ctx, cancel := a.bounded(ctx)
		message, err := p.Message(ctx)
		cancel()
		if err != nil {
			a.Log(LevelWarn, []byte("read: "+err.Error()))
			return ErrnoOf(err)
		}
		h.message, h.child = message, true
		a.ops.unread += len(message)
	}
	h.pending.Drop()
	h.taken, h.pending = true, nil
	return OK
}

// await waits until one pending thing is ready.
func (a *Attempt) await(ctx context.Context, o Ops, p Pending) Errno {
	if a.cancelled.Load() && !a.ops.notified {
		return a.stopped()
	}
	a.ops.pending = append(a.ops.pending[:0], p)
	defer clear(a.ops.pending)
	if o.Wait(canceled.Context(), a.ops.pending) >= 0 {
		return OK
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	if o.Wait(ctx, a.ops.pending) < 0 {
		return a.stopped()
	}
	return OK
}

// messageOf returns what a guest reads from an exchange.
func messageOf(r *HTTPResponse, err error) []byte {
	if err != nil {
		return AppendNoResponse(nil, err)
	}
	return AppendResponse(make([]byte, 0, 256+len(r.Body)), r)
}

// Drop gives up a handle: a request in flight is cancelled, and the number
// becomes invalid. A number that is not a handle is [ErrInvalid].
func (a *Attempt) Drop(number int32) Errno {
	if far := a.far(); far != nil {
		return far.Drop(number)
	}
	at := a.ops.place(number)
	if at == nil || *at == nil {
		return ErrInvalid
	}
	h := *at
	*at = nil
	a.ops.held--
	if number >= firstHandle {
		a.ops.free = append(a.ops.free, number-firstHandle)
	}
	if h.request {
		a.ops.open--
		a.ops.moved += a.unread(h.pending)
	}
	a.wasRead(h, len(h.message))
	if h.stream {
		a.ops.streams--
		if number == a.ops.inbox {
			a.ops.inbox = 0
		}
	}
	if h.pending != nil {
		h.pending.Drop()
	}
	return OK
}

// wasRead records that n bytes of a message need not be kept any more.
func (a *Attempt) wasRead(h *handle, n int) {
	if h.child {
		a.ops.unread -= n
	}
}

// unread returns the size of a response that has arrived but was not read.
func (a *Attempt) unread(p Pending) int64 {
	o, ok := a.Services.(Ops)
	if x, exchange := p.(Exchange); ok && exchange && o.Wait(canceled.Context(), []Pending{p}) == 0 {
		if r, err := x.Response(context.Background()); err == nil {
			return int64(len(r.Body))
		}
	}
	return 0
}

// Release drops all handles, when the attempt has ended.
func (a *Attempt) Release() {
	if a.ops.held == 0 {
		return
	}
	for i := range a.ops.handles {
		a.Drop(firstHandle + int32(i))
	}
	for i := range a.ops.children {
		a.Drop(int32(i) + 1)
	}
}

// bounded returns a context that ends when the attempt is stopped or cancelled; a
// guest that was already notified of the cancel may continue until it is stopped.
// No engine can stop a guest while it waits in the host.
func (a *Attempt) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	var cancel context.CancelFunc
	if a.Deadline.IsZero() {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithDeadline(ctx, a.Deadline)
	}
	if a.ops.notified {
		return ctx, cancel
	}
	// In this order, the reverse of that in Cancel: at least one of them sees the other.
	a.waits.Store(&cancel)
	if a.cancelled.Load() {
		cancel()
	}
	return ctx, func() {
		a.waits.Store(nil)
		cancel()
	}
}
