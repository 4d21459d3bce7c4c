package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/op"
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

// Subscription is one reader's view of a hub. It is safe for concurrent use; of
// several goroutines that read it, each item is for one.
type Subscription[T any] struct {
	hub *Hub[T]
	key string

	prev, next *Subscription[T] // of the same key; protected by hub.mu
	linked     bool             // protected by hub.mu

	mu       sync.Mutex           // protects the fields below; taken after hub.mu
	waiters  op.WaitList[Item[T]] // only while there is nothing to read
	ready    chan struct{}        // holds a token when there may be something to read, closed at the end; nil = not asked for yet
	queue    []Item[T]            // queue[head:] is unread
	head     int
	replayed int // how many of the unread are from the past and don't count as lag
	bytes    int // size of the unread that count
	gap      *GapError
	reason   error // nil = open
}

// Next returns the next item, waiting for it until ctx ends, whose cause is
// the error then. [ErrGap] may come once, first, and doesn't end the
// subscription. Every other error does, after the last unread item: [ErrSlow],
// [ErrClosed], or the reason of the hub's Close.
func (s *Subscription[T]) Next(ctx context.Context) (Item[T], error) {
	for {
		item, ok, err := s.take()
		if ok {
			return item, err
		}
		select {
		case <-s.wakeUp():
		case <-ctx.Done():
			return Item[T]{}, context.Cause(ctx)
		}
	}
}

// NextOp returns Next as an op. If it loses, nothing has been taken.
func (s *Subscription[T]) NextOp() op.Op[Item[T]] { return op.New(s.take, s.await) }

// TryNext is Next without waiting: it returns false and no error when there is
// nothing to read now.
func (s *Subscription[T]) TryNext() (Item[T], bool, error) {
	item, ok, err := s.take()
	return item, ok && err == nil, err
}

// take takes what Next results in, if there is anything.
func (s *Subscription[T]) take() (Item[T], bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gap != nil:
		gap := s.gap
		s.gap = nil
		return Item[T]{}, true, gap
	case s.head < len(s.queue):
		return s.popLocked(), true, nil
	}
	return Item[T]{}, s.reason != nil, s.reason
}

// wakeUp returns a channel that can be received from when there may be something
// to take. It is for readers that wait for nothing else: a token in a channel costs
// them less than an op.
func (s *Subscription[T]) wakeUp() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil {
		s.ready = make(chan struct{}, 1)
		if s.reason != nil {
			close(s.ready)
		}
	}
	if s.head < len(s.queue) {
		s.signalLocked()
	}
	return s.ready
}

// signalLocked puts the token into ready unless it is there, or ready is closed.
func (s *Subscription[T]) signalLocked() {
	if s.ready == nil || s.reason != nil {
		return
	}
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// await registers a reader.
func (s *Subscription[T]) await(w *op.Waiter[Item[T]]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch { // it came since take
	case s.head < len(s.queue):
		if w.Complete(s.queue[s.head], nil) {
			s.popLocked()
		}
	case s.reason != nil:
		w.Complete(Item[T]{}, s.reason)
	default:
		s.waiters.Wait(w, &s.mu)
	}
}

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
	s.queue, s.head, s.gap = nil, 0, nil
	s.replayed, s.bytes = 0, 0
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
		s.waiters.CompleteAll(Item[T]{}, reason)
		if s.ready != nil {
			close(s.ready)
		}
	}
}

// push appends an item and reports whether there was room for it; if not the
// subscription has ended.
func (s *Subscription[T]) push(item *Item[T]) bool {
	size := s.hub.sizeOf(item.Value)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiters.Len() > 0 && s.waiters.Complete(*item, nil) {
		return true
	}
	lag, o := len(s.queue)-s.head-s.replayed, &s.hub.options
	if lag >= o.Buffer || lag > 0 && s.bytes+size > o.BufferBytes {
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
	s.signalLocked()
	return true
}

// popLocked takes the first unread item.
func (s *Subscription[T]) popLocked() Item[T] {
	item := s.queue[s.head]
	s.queue[s.head] = Item[T]{} // so that it can be freed
	s.head++
	if s.replayed > 0 {
		s.replayed--
	} else {
		s.bytes -= s.hub.sizeOf(item.Value)
	}
	if s.head < len(s.queue) {
		s.signalLocked() // for another reader that waits
		return item
	}
	s.head = 0
	if s.queue = s.queue[:0]; cap(s.queue) > 2*s.hub.options.Buffer {
		s.queue = nil // a long replay is over
	}
	return item
}
