package jobhost

import (
	"errors"
	"iter"
)

// Inbox is what a fiber is sent, message by message. It may be waited for by
// [Job.Wait], together with requests, timers and watches.
type Inbox struct{ op }

// Inbox returns what the fiber is sent; it is the same each time. The error is
// [ErrDenied] for jobs, which are sent nothing.
func (j *Job) Inbox() (*Inbox, error) {
	n := j.host.Receive()
	if n < 0 {
		return nil, failed("receive", Errno(n))
	}
	return &Inbox{j.op("", n)}, nil
}

// Next waits for the next message, which may be empty, and returns it. Errors:
// [ErrClosed] when nobody can send any more, and those of [Job.Wait].
func (i *Inbox) Next() ([]byte, error) { return i.next("receive") }

// Recv waits for the next message that the fiber is sent: [Inbox.Next].
func (j *Job) Recv() ([]byte, error) {
	inbox, err := j.Inbox()
	if err != nil {
		return nil, err
	}
	return inbox.Next()
}

// Messages gives what the fiber is sent as it comes, until nobody can send any
// more. Anything else that ends it comes as an error, last, such as [ErrStopped]
// when the fiber is interrupted.
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
