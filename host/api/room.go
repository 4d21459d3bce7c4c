package api

import (
	"container/list"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

// What answers take of the room for them while they are made; once one is made its size
// is known.
const (
	pageRoom   = 1 << 20   // an answer in JSON
	streamRoom = 256 << 10 // the buffers of what is passed on in pieces, ours and those of a payload store
)

// hurry is how much less time than otherwise a client has for a piece of its answer while
// others wait for room.
const hurry = 10

// room bounds what answers hold in memory together, while they are made and while clients
// read them. Who finds it full waits, first come, first served. While anyone waits,
// clients that don't read lose their connections soon.
type room struct {
	limit int64         // in bytes
	stall time.Duration // how long a client may take for a piece while no other call waits for room

	mu      sync.Mutex // protects what follows
	used    int64
	waiting list.List           // of *turn
	writing map[*lease]struct{} // answers that are on their way to clients
}

// turn is that of an answer that waits for room.
type turn struct {
	n       int64
	granted chan struct{} // closed when it has what it waits for
}

// tryTake takes n bytes, at most all that there are, unless others wait or it is too much.
func (r *room) tryTake(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting.Len() > 0 || r.used+min(n, r.limit) > r.limit {
		return false
	}
	r.used += min(n, r.limit)
	return true
}

// take waits for n bytes, at most all that there are, until ctx ends, for as long as a client may
// take to read a piece.
func (r *room) take(ctx context.Context, n int64) error {
	t := &turn{min(n, r.limit), make(chan struct{})}
	r.mu.Lock()
	place := r.waiting.PushBack(t)
	r.grantLocked()
	r.hurryLocked()
	r.mu.Unlock()
	timer := time.NewTimer(r.stall)
	defer timer.Stop()
	var err error
	select {
	case <-t.granted:
		return nil
	case <-timer.C:
		err = errNoRoom
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-t.granted:
		r.used -= t.n
	default:
		r.waiting.Remove(place)
	}
	r.grantLocked()
	return err
}

var errNoRoom = &jobhost.Error{
	Code: jobhost.CodeUnavailable, Message: "too many large answers are being read", RetryAfter: time.Second,
	Hint: "try again later, and read answers as they come",
}

// grantLocked gives those their turn who come first and whom there is room for.
func (r *room) grantLocked() {
	for place := r.waiting.Front(); place != nil; place = r.waiting.Front() {
		t := place.Value.(*turn)
		if r.used+t.n > r.limit {
			return
		}
		r.used += t.n
		r.waiting.Remove(place)
		close(t.granted)
	}
}

// hurryLocked shortens the time of clients that are reading, if anyone waits.
func (r *room) hurryLocked() {
	if r.waiting.Len() == 0 {
		return
	}
	soon := time.Now().Add(r.stall / hurry)
	for l := range r.writing {
		if l.until.After(soon) {
			l.until = soon
			_ = l.c.SetWriteDeadline(soon) // one that can't be set now can't be at the next piece, which says so
		}
	}
}

// lease is what one answer holds of a room. One goroutine uses it.
type lease struct {
	room *room
	n    int64 // in bytes
	// overdraws lets the answer be larger than there is room for: one to a call that
	// has changed something is not refused.
	overdraws bool

	c     *http.ResponseController // protected by room.mu, as what follows
	until time.Time                // the deadline of the piece on its way
}

// tryTake exchanges what is held for n bytes, if that needs no waiting; otherwise nothing is held.
func (l *lease) tryTake(n int64) bool {
	l.release()
	if l.room.tryTake(n) {
		l.n = min(n, l.room.limit)
	}
	return l.n > 0
}

// take exchanges what is held for n bytes, and waits for them. Nothing is held
// meanwhile: those who hold some and wait for more could wait for each other.
func (l *lease) take(ctx context.Context, n int64) error {
	l.release()
	if err := l.room.take(ctx, n); err != nil {
		return err
	}
	l.n = min(n, l.room.limit)
	return nil
}

// settle exchanges what is held for the size that the answer turned out to have. The answer is
// there already, so it does not wait: errNoRoom means that the answer must be dropped.
func (l *lease) settle(n int64) error {
	r := l.room
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, r.limit)
	if n > l.n && r.used-l.n+n > r.limit && !l.overdraws {
		return errNoRoom
	}
	r.used += n - l.n
	l.n = n
	r.grantLocked()
	return nil
}

// extend gives a client time to read the next piece.
func (l *lease) extend(c *http.ResponseController) error {
	r := l.room
	r.mu.Lock()
	defer r.mu.Unlock()
	patience := r.stall
	if r.waiting.Len() > 0 {
		patience /= hurry
	}
	l.c, l.until = c, time.Now().Add(patience)
	r.writing[l] = struct{}{}
	if err := c.SetWriteDeadline(l.until); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// release gives back what is held. Later calls do nothing.
func (l *lease) release() {
	r := l.room
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.writing, l)
	r.used -= l.n
	l.n = 0
	r.grantLocked()
}
