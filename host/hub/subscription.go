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

// ErrSlow ends a subscription that did not read as fast as items arrived.
var ErrSlow error = &jobhost.Error{
	Code:    jobhost.CodeExhausted,
	Message: "the reader was too slow",
	Hint:    "subscribe again after the last number that was read",
}

// ErrClosed ends a subscription closed by its reader, and those of a hub that was
// closed without another reason.
var ErrClosed = errors.New("the subscription is closed")

// ErrGap is matched by a [GapError].
var ErrGap = errors.New("items are missing")

// GapError says that a hub no longer has what a subscription asked for. The
// subscription continues after the gap.
type GapError struct {
	// After is the number that was asked for; Next is the number of the first item
	// that the hub can still deliver, of this key or another.
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

// Subscription is one reader's view of a hub. It is safe for concurrent use; each
// item goes to only one of several reading goroutines.
type Subscription[T any] struct {
	hub *Hub[T]
	key string

	prev, next *Subscription[T] // of the same key; protected by hub.mu
	linked     bool             // protected by hub.mu

	mu      sync.Mutex           // protects the fields below; taken after hub.mu
	waiters op.WaitList[Item[T]] // readers; only while there is nothing to read
	ready   chan struct{}        // holds a token when there may be something to read, closed at the end; nil = not used yet
	gap     *GapError
	past    []Item[T] // the current piece of the past; all of it is unread
	due     uint64    // the number at which the next piece begins
	until   uint64    // the last number of the past
	queue   []Item[T] // items published since; queue[head:] is unread
	head    int
	bytes   int   // size of the unread items in queue
	reason  error // nil = open
}

// Next returns the next item, waiting for it until ctx ends, in which case the
// error is its cause. [ErrGap] may be returned once, first, and doesn't end the
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

// NextOp returns Next as an op. If it loses, it has taken nothing.
func (s *Subscription[T]) NextOp() op.Op[Item[T]] { return op.New(s.take, s.await) }

// TryNext is Next without waiting: it returns false and no error if there is
// nothing to read now.
func (s *Subscription[T]) TryNext() (Item[T], bool, error) {
	item, ok, err := s.take()
	return item, ok && err == nil, err
}

// take takes the next item, if there is one.
func (s *Subscription[T]) take() (Item[T], bool, error) {
	s.lockFetched()
	defer s.mu.Unlock()
	if s.gap != nil {
		gap := s.gap
		s.gap = nil
		s.wakeLocked()
		return Item[T]{}, true, gap
	}
	if item := s.firstLocked(); item != nil {
		first := *item
		s.popLocked()
		return first, true, nil
	}
	return Item[T]{}, s.reason != nil, s.reason
}

// lockFetched locks mu with a piece of the past in place, if there is more of it.
func (s *Subscription[T]) lockFetched() {
	for {
		s.fetch()
		s.mu.Lock()
		if !s.wantsLocked() {
			return
		}
		s.mu.Unlock() // another reader has taken the last of that piece
	}
}

// firstLocked returns the first unread item at hand; nil = none.
func (s *Subscription[T]) firstLocked() *Item[T] {
	switch {
	case len(s.past) > 0:
		return &s.past[0]
	case s.head < len(s.queue):
		return &s.queue[s.head]
	}
	return nil
}

// wakeUp returns a channel that receives when there may be something to take. It is
// for readers that wait for nothing else: a token in a channel is cheaper than an
// op.
func (s *Subscription[T]) wakeUp() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil {
		s.ready = make(chan struct{}, 1)
		if s.reason != nil {
			close(s.ready)
		}
	}
	s.wakeLocked()
	return s.ready
}

// wakeLocked wakes another waiting reader if there is something for it.
func (s *Subscription[T]) wakeLocked() {
	if s.gap != nil || s.firstLocked() != nil || s.wantsLocked() {
		s.signalLocked()
	}
}

// signalLocked puts the token into ready unless it is there already, or ready is
// closed.
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
	s.lockFetched()
	defer s.mu.Unlock()
	item := s.firstLocked()
	switch { // it arrived after take
	case item != nil:
		if w.Complete(*item, nil) {
			s.popLocked()
		}
	case s.reason != nil:
		w.Complete(Item[T]{}, s.reason)
	default:
		s.waiters.Wait(w, &s.mu)
	}
}

// Err returns the reason why the subscription has ended, even if there are unread
// items; nil = it is open.
func (s *Subscription[T]) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// Close ends the subscription and drops unread items. Later calls do nothing.
func (s *Subscription[T]) Close() {
	s.hub.mu.Lock()
	s.hub.unlinkLocked(s)
	s.hub.mu.Unlock()
	s.end(ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked()
}

// dropLocked drops unread items.
func (s *Subscription[T]) dropLocked() {
	s.gap, s.past, s.due, s.until = nil, nil, 1, 0
	s.hub.options.Budget.free(s.bytes)
	s.queue, s.head, s.bytes = nil, 0, 0
}

// end sets the reason unless there is one.
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

// push appends an item and reports whether there was room for it; if not, the
// subscription has ended.
func (s *Subscription[T]) push(item *Item[T]) bool {
	size := s.hub.sizeOf(item.Value)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiters.Len() > 0 && s.waiters.Complete(*item, nil) {
		return true
	}
	lag, o := len(s.queue)-s.head, &s.hub.options
	if lag >= o.Buffer || lag > 0 && s.bytes+size > o.BufferBytes || !o.Budget.take(size, lag == 0) {
		s.endLocked(ErrSlow)
		return false
	}
	if len(s.queue) == cap(s.queue) && s.head > len(s.queue)/2 {
		// Reuse the space at the front before growing.
		s.queue = slices.Delete(s.queue, 0, s.head)
		s.head = 0
	}
	s.queue = append(s.queue, *item)
	s.bytes += size
	s.signalLocked()
	return true
}

// popLocked drops the first unread item, which has been taken.
func (s *Subscription[T]) popLocked() {
	defer s.wakeLocked() // another reader may wait for the next item
	if len(s.past) > 0 {
		s.past[0] = Item[T]{} // so that it can be freed
		s.past = s.past[1:]
		return
	}
	size := s.hub.sizeOf(s.queue[s.head].Value)
	s.queue[s.head] = Item[T]{}
	s.head++
	s.bytes -= size
	s.hub.options.Budget.free(size)
	if s.head < len(s.queue) {
		return
	}
	s.head = 0
	if s.queue = s.queue[:0]; cap(s.queue) > s.hub.pieceItems() {
		s.queue = nil // the reader has caught up, and may not lag like this again
	}
}
