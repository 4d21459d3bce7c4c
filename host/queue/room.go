package queue

import (
	"context"
	"time"
)

// Roomy is a [Store] that can run out of room, and then keeps settlements back that
// are patient.
type Roomy interface {
	Store
	// Full returns why nothing new is taken, an error with code unavailable and
	// field [jobhost.FieldDisk]; nil = there is room.
	Full() error
	// Flowing returns a channel that is closed as soon as no settlement is kept back.
	Flowing() <-chan struct{}
	// GiveUp lets settlements fail that are kept back, now and from now on.
	GiveUp()
}

// lookForRoom is how often those look who wait for something that may be kept back.
const lookForRoom = 250 * time.Millisecond

// full returns why the store takes nothing new; nil = it does.
func (q *Queue) full() error {
	if s, ok := q.store.(Roomy); ok {
		return s.Full()
	}
	return nil
}

// awaitRoom returns when no settlement is kept back. Tasks that would begin before
// would only add to what waits, and run twice if the host is killed meanwhile.
func (q *Queue) awaitRoom(ctx context.Context) error {
	s, ok := q.store.(Roomy)
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
