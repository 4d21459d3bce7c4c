package queue

import (
	"context"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
)

// lookForRoom is how often a wait for something that may be kept back looks again.
const lookForRoom = 250 * time.Millisecond

// full returns why the store takes nothing new; nil = it does.
func (q *Queue) full() error {
	if s, ok := q.store.(record.Roomy); ok {
		return s.Full()
	}
	return nil
}

// awaitRoom returns when no settlement is kept back. Tasks that would begin before
// would only add to what waits, and run twice if the host is killed before.
func (q *Queue) awaitRoom(ctx context.Context) error {
	s, ok := q.store.(record.Roomy)
	if !ok {
		return nil
	}
	select {
	case <-s.Flowing():
		return nil
	case <-q.closing:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
