package state

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Buffer is how many changes a subscription may have unread, besides what it
// begins with, and BufferBytes how large their texts may be together; one change
// there may always be.
const (
	Buffer      = 256
	BufferBytes = 1 << 20
)

// Subscription is what one reader gets of a job.
type Subscription struct {
	Query
	board  *Board
	owner  any         // what ends it besides; nil = nothing
	notify func()      // called after each change of what there is to read; may be nil
	leave  func() bool // stops watching the context
	weight int         // about how many bytes it begins with

	// The board's lock protects these. The board sends to events and closes it.
	events chan *Event // nil while it is filled with what it begins with
	early  []*Event    // changes that came during the replay
	sizes  []int       // of the changes that were sent last, all that are unread among them
	unread int         // bytes, as sizes has them
	err    error       // why it has ended
}

// Events returns the channel of events. It is closed when the subscription has
// ended, after what was sent before; [Subscription.Err] says why. Others get
// the same events, which must not be changed.
func (s *Subscription) Events() <-chan *Event { return s.events }

// Weight is about how many bytes the subscription began with.
func (s *Subscription) Weight() int { return s.weight }

// Err says why the subscription has ended: the cause of its context, [ErrSlow],
// [ErrDeleted], [ErrClosed], or what made the store give up; nil = it has not.
func (s *Subscription) Err() error {
	s.board.mu.RLock()
	defer s.board.mu.RUnlock()
	return s.err
}

// Close ends the subscription with [ErrClosed]; later calls do nothing.
func (s *Subscription) Close() { s.end(ErrClosed) }

// Subscribe tells of states until ctx ends: first of those that there are, oldest
// first, each with Replay, then by an event with Sentinel that this was all, and
// then of each change, in the order of the store. A change is delivered once, and
// nothing is missing in between. notify, if not nil, is called after each event and
// at the end, under locks: it must be quick and not use the board.
//
// With [Query.After] what has not changed since that cursor is not told again. A
// cursor of another life of the board counts as none.
func (b *Board) Subscribe(ctx context.Context, q Query, notify func()) (*Subscription, error) {
	return b.subscribe(ctx, q, nil, notify)
}

func (b *Board) subscribe(ctx context.Context, q Query, owner any, notify func()) (*Subscription, error) {
	if err := q.check(b.tasks); err != nil {
		return nil, err
	}
	s := &Subscription{Query: q, board: b, owner: owner, notify: notify}
	began := time.Now()
	list, cursor, err := b.admit(s)
	if err != nil {
		return nil, err
	}
	events := replay(list, cursor)
	for _, state := range list {
		s.weight += sizeOf(state) + stateBytes
	}
	if b.observe.Replayed != nil {
		b.observe.Replayed(time.Since(began))
	}
	s.begin(ctx, events)
	return s, nil
}

// admit makes a subscription one that gets changes, and returns the states
// that there are, in no order, and the cursor of that moment.
func (b *Board) admit(s *Subscription) ([]*State, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return nil, "", b.ended
	}
	b.subs[s] = struct{}{}
	return b.selectLocked(s.Query, b.seqOf(s.After)), b.cursorLocked(), nil
}

// replay makes the channel of a subscription, with what it begins with. That may take
// long, and so nothing waits for it: what changes in between is kept for later.
func replay(list []*State, cursor string) chan *Event {
	slices.SortFunc(list, asReplayed)
	// What stays of it for as long as the subscription is a pointer for each.
	events := make(chan *Event, len(list)+1+Buffer)
	all := make([]Event, len(list))
	for i, s := range list {
		all[i] = Event{State: *s, Replay: true}
		events <- &all[i]
	}
	events <- &Event{Sentinel: true, Replay: true, Cursor: cursor}
	return events
}

// begin hands a subscription its channel, with what has changed since it was admitted.
func (s *Subscription) begin(ctx context.Context, events chan *Event) {
	s.board.mu.Lock()
	defer s.board.mu.Unlock()
	s.events = events
	for i := range s.early { // not more than there is room for
		s.events <- s.early[i]
		s.tell()
	}
	s.early = nil
	if s.err != nil {
		close(s.events)
		s.tell()
		return
	}
	s.leave = context.AfterFunc(ctx, func() { s.end(context.Cause(ctx)) })
}

// cursorLocked names the last change.
func (b *Board) cursorLocked() string { return b.epoch + "-" + strconv.FormatUint(b.seq, 10) }

// seqOf returns the number of the change that a cursor names; 0 = none of this board.
func (b *Board) seqOf(cursor string) uint64 {
	epoch, number, _ := strings.Cut(cursor, "-")
	if epoch != b.epoch {
		return 0
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || seq > b.seq {
		return 0
	}
	return seq
}

// sendLocked sends a change with texts of a size, or ends a subscription that has
// no room for it.
func (s *Subscription) sendLocked(e *Event, size int) {
	switch {
	case !s.roomLocked(size):
		if f := s.board.observe.Slow; f != nil {
			f()
		}
		s.endLocked(ErrSlow)
	case s.events == nil:
		s.early = append(s.early, e)
	default:
		s.events <- e
		s.tell()
	}
}

// roomLocked counts a change in if there is room for it. What was read is known by
// how much is left, since it is read in order.
func (s *Subscription) roomLocked(size int) bool {
	unread := len(s.early) + len(s.events)
	if read := len(s.sizes) - unread; read > 0 {
		for _, n := range s.sizes[:read] {
			s.unread -= n
		}
		s.sizes = slices.Delete(s.sizes, 0, read)
	}
	full := s.events == nil && unread >= Buffer || s.events != nil && unread == cap(s.events)
	if full || len(s.sizes) > 0 && s.unread+size > BufferBytes {
		return false
	}
	s.sizes, s.unread = append(s.sizes, size), s.unread+size
	return true
}

func (s *Subscription) tell() {
	if s.notify != nil {
		s.notify()
	}
}

func (s *Subscription) end(reason error) {
	s.board.mu.Lock()
	defer s.board.mu.Unlock()
	s.leaveLocked(reason)
}

// leaveLocked ends a subscription that its reader has left.
func (s *Subscription) leaveLocked(reason error) {
	if f, n := s.board.observe.Dropped, len(s.events); s.err == nil && f != nil && n > 0 {
		f(n)
	}
	s.endLocked(reason)
}

func (s *Subscription) endLocked(reason error) {
	if s.err != nil {
		return
	}
	s.err = reason
	delete(s.board.subs, s)
	if s.events == nil {
		return // begin closes it
	}
	close(s.events)
	if s.leave != nil {
		s.leave()
	}
	s.tell()
}
