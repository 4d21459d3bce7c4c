package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jobhost/jobhost"
)

// ErrSlow ends a subscription that did not read as fast as items came.
var ErrSlow error = &jobhost.Error{
	Code:    jobhost.CodeExhausted,
	Message: "the reader was too slow",
	Hint:    "subscribe again after the last number that was read",
}

// ErrClosed ends a subscription that was closed by its reader, and those of a
// hub that was closed without another reason.
var ErrClosed = errors.New("the subscription is closed")

// ErrGap is what errors.Is finds in a [GapError].
var ErrGap = errors.New("items are missing")

// GapError says that a hub no longer has what a subscription asked for. The
// subscription goes on after it.
type GapError struct {
	// After is what was asked for; Next is the number of the first item that
	// the hub can still give, of this key or another.
	After, Next uint64
}

// Error says what is missing.
func (e *GapError) Error() string {
	if e.Next <= e.After {
		return fmt.Sprintf("items after %d are asked for, but the numbers began again and are not there yet", e.After)
	}
	return fmt.Sprintf("items %d to %d are no longer remembered", e.After+1, e.Next-1)
}

// Is reports whether target is [ErrGap].
func (e *GapError) Is(target error) bool { return target == ErrGap }

// Subscription is one reader's view of a hub. One goroutine reads it; Close
// and Err may be called from others.
type Subscription[T any] struct {
	hub *Hub[T]
	key string

	prev, next *Subscription[T] // of the same key; protected by hub.mu
	linked     bool             // protected by hub.mu

	// ready holds a token when there may be something to read and is closed
	// when the subscription has ended. It is written under mu.
	ready chan struct{}

	mu     sync.Mutex // protects the fields below; taken after hub.mu
	gap    *GapError
	past   []Item[T] // a piece of what was asked for of the past; all of it is unread
	due    uint64    // what follows that piece is the items from this number
	until  uint64    // to this one
	queue  []Item[T] // what has come since; queue[head:] is unread
	head   int
	bytes  int   // size of what is unread in queue
	reason error // nil = open
}

// Next returns the next item, waiting for it until ctx ends, whose cause is
// the error then. [ErrGap] may come once, first, and doesn't end the
// subscription. Every other error does, after the last unread item: [ErrSlow],
// [ErrClosed], or the reason of the hub's Close.
func (s *Subscription[T]) Next(ctx context.Context) (Item[T], error) {
	for {
		item, ok, err := s.TryNext()
		if ok || err != nil {
			return item, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Item[T]{}, context.Cause(ctx)
		}
	}
}

// TryNext is Next without waiting: it returns false and no error when there is
// nothing to read now.
func (s *Subscription[T]) TryNext() (Item[T], bool, error) {
	s.fetch()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gap != nil:
		gap := s.gap
		s.gap = nil
		s.signal() // there may be items behind it
		return Item[T]{}, false, gap
	case len(s.past) > 0:
		item := s.past[0]
		s.past = s.past[1:]
		s.signal() // there may be more behind it
		return item, true, nil
	case s.head < len(s.queue):
		return s.popLocked(), true, nil
	}
	return Item[T]{}, false, s.reason
}

// Ready returns a channel to select on that can be received from when TryNext
// should be called: it may have something then, and has if the channel is
// closed. One token may stand for many items, so each TryNext that leaves some
// behind puts the token back.
func (s *Subscription[T]) Ready() <-chan struct{} { return s.ready }

// Err returns the reason for which the subscription has ended, though there
// may be unread items; nil = it is open.
func (s *Subscription[T]) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// Close ends the subscription and drops what is unread. Later calls do nothing.
func (s *Subscription[T]) Close() {
	s.hub.mu.Lock()
	s.hub.unlinkLocked(s)
	s.hub.mu.Unlock()
	s.end(ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked()
}

// dropLocked drops what is unread.
func (s *Subscription[T]) dropLocked() {
	s.gap, s.past, s.due, s.until = nil, nil, 1, 0
	s.hub.options.Budget.free(s.bytes)
	s.queue, s.head, s.bytes = nil, 0, 0
}

// end gives the reason unless there is one.
func (s *Subscription[T]) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(reason)
}

func (s *Subscription[T]) endLocked(reason error) {
	if s.reason == nil {
		s.reason = reason
		close(s.ready)
	}
}

// push appends an item and reports whether there was room for it; if not the
// subscription has ended.
func (s *Subscription[T]) push(item *Item[T]) bool {
	size := s.hub.sizeOf(item.Value)
	s.mu.Lock()
	defer s.mu.Unlock()
	lag, o := len(s.queue)-s.head, &s.hub.options
	if lag >= o.Buffer || lag > 0 && s.bytes+size > o.BufferBytes || !o.Budget.take(size, lag == 0) {
		s.endLocked(ErrSlow)
		return false
	}
	if len(s.queue) == cap(s.queue) && s.head > len(s.queue)/2 {
		// Room at the front is used before more is asked for.
		s.queue = slices.Delete(s.queue, 0, s.head)
		s.head = 0
	}
	s.queue = append(s.queue, *item)
	s.bytes += size
	s.signal()
	return true
}

// popLocked takes the first unread item of what has come since.
func (s *Subscription[T]) popLocked() Item[T] {
	item := s.queue[s.head]
	s.queue[s.head] = Item[T]{} // so that it can be freed
	s.head++
	size := s.hub.sizeOf(item.Value)
	s.bytes -= size
	s.hub.options.Budget.free(size)
	if s.head < len(s.queue) {
		s.signal()
		return item
	}
	s.head = 0
	if s.queue = s.queue[:0]; cap(s.queue) > s.hub.pieceItems() {
		s.queue = nil // it has caught up, and may have no such lag again
	}
	return item
}

// signal puts the token into ready unless it is there or the subscription has
// ended.
func (s *Subscription[T]) signal() {
	if s.reason != nil {
		return
	}
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
