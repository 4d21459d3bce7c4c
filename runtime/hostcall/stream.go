package hostcall

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost"
)

// Stream is a [Pending] with many messages, one after the other. It is ready
// when there is a message, and when it has ended.
type Stream interface {
	Pending
	// Next returns the next message, or false if there is none at the moment. An
	// error says why there will be no more, after the last one.
	Next() (message []byte, ok bool, err error)
}

// Inbox is an optional ability of [Services]: the messages sent to a fiber.
type Inbox interface {
	// Receive returns the stream of messages to the fiber, always the same one; nil
	// = the attempt is not a fiber's.
	Receive(at *Attempt) Stream
}

// maxStreams bounds the streams of an attempt, each of which may hold messages.
const maxStreams = 64

// Receive returns the handle of the fiber's inbox, from which each message can be
// read. It is the same handle each time, until it is dropped. The error is
// [ErrDenied] for attempts that are not a fiber's.
func (a *Attempt) Receive() (int32, Errno) {
	if far := a.far(); far != nil {
		return far.Receive()
	}
	inbox, ok := a.Services.(Inbox)
	if !ok {
		return 0, ErrDenied
	}
	if a.ops.inbox != 0 {
		return a.ops.inbox, OK
	}
	stream := inbox.Receive(a)
	switch {
	case stream == nil:
		return 0, ErrDenied
	case a.ops.held >= maxHandles || a.ops.streams >= maxStreams:
		return 0, ErrLimit
	}
	a.ops.inbox = a.keepStream(stream)
	return a.ops.inbox, OK
}

// keepStream gives a stream a handle.
func (a *Attempt) keepStream(s Stream) int32 {
	a.ops.streams++
	return a.keep(&handle{pending: s, stream: true})
}

// current waits for a message of a stream, unless one is being read. The end of
// the stream is [ErrClosed], or [ErrLimit] when it has overflowed. A guest that
// always has more to read is notified of a cancel before the next message.
func (a *Attempt) current(ctx context.Context, o Ops, h *handle) Errno {
	if !h.taken && a.cancelled.Load() && !a.ops.notified {
		return a.stopped()
	}
	for !h.taken {
		message, ok, err := h.pending.(Stream).Next()
		switch {
		case err != nil:
			if errors.Is(err, &jobhost.Error{Code: jobhost.CodeExhausted}) {
				return ErrLimit
			}
			return ErrClosed
		case ok:
			h.message, h.taken = message, true
			if a.ops.inbox != 0 && a.ops.handles[a.ops.inbox-firstHandle] == h {
				a.renew()
			}
		default:
			if e := a.await(ctx, o, h.pending); e != OK {
				return e
			}
		}
	}
	return OK
}

// renew restores a fiber's limits on requests, for each message that it receives.
func (a *Attempt) renew() { a.ops.requests, a.ops.moved = 0, 0 }

// readStream is [Attempt.Read] for a stream: once a message has been copied to
// its end, the next one follows.
func (a *Attempt) readStream(ctx context.Context, o Ops, h *handle, buf []byte) (int, Errno) {
	if e := a.current(ctx, o, h); e != OK {
		return 0, e
	}
	if len(buf) == 0 {
		return len(h.message), OK
	}
	n := copy(buf, h.message)
	if h.message = h.message[n:]; len(h.message) == 0 {
		h.message, h.taken = nil, false
	}
	return n, OK
}
