package jobhost

import (
	"errors"
	"iter"
)

// Inbox receives the messages to a fiber. It may be waited for with [Job.Wait],
// together with requests, timers and watches.
type Inbox struct{ op }

// Inbox returns the fiber's inbox; it is the same each time. The error is
// [ErrDenied] for jobs, which get no messages.
func (j *Job) Inbox() (*Inbox, error) {
	n := j.host.Receive()
	if n < 0 {
		return nil, failed("receive", Errno(n))
	}
	return &Inbox{j.op("", n)}, nil
}

// Next waits for the next message, which may be empty, and returns it. Errors:
// [ErrClosed] when there can be no more messages, and those of [Job.Wait].
func (i *Inbox) Next() ([]byte, error) { return i.next("receive") }

// Recv waits for the next message to the fiber: [Inbox.Next].
func (j *Job) Recv() ([]byte, error) {
	inbox, err := j.Inbox()
	if err != nil {
		return nil, err
	}
	return inbox.Next()
}

// Messages yields the messages to the fiber as they arrive, until there can be
// no more. Any other end is yielded as a last error, such as [ErrStopped] when
// the fiber is interrupted.
//
//	for message, err := range job.Messages() {
//		if err != nil {
//			return nil, err
//		}
//		…
//	}
func (j *Job) Messages() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			message, err := j.Recv()
			if errors.Is(err, ErrClosed) {
				return
			}
			if !yield(message, err) || err != nil {
				return
			}
		}
	}
}
