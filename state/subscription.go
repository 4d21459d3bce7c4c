package state

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Buffer is how many changes a subscription may have unread, besides what it
// begins with.
const Buffer = 256

// Subscription is what one reader is told of a job.
type Subscription struct {
	Query
	board  *Board
	owner  any         // what ends it besides; nil = nothing
	notify func()      // called after each change of what there is to read; may be nil
	events chan Event  // the board sends to it and closes it, under its lock
	leave  func() bool // stops watching the context
	err    error       // why it has ended; protected by the board's lock
}

// Events returns the channel of events. It is closed when the subscription has
// ended, after what was sent before; [Subscription.Err] says why.
func (s *Subscription) Events() <-chan Event { return s.events }

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
// then of each change, in the order of the store. A change is told once, and
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
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return nil, b.ended
	}
	began := time.Now()
	b.replayLocked(s)
	if b.observe.Replayed != nil {
		b.observe.Replayed(time.Since(began))
	}
	b.subs[s] = struct{}{}
	s.leave = context.AfterFunc(ctx, func() { s.end(context.Cause(ctx)) })
	return s, nil
}

// replayLocked makes the channel of a subscription, with what it begins with.
func (b *Board) replayLocked(s *Subscription) {
	list := b.selectLocked(s.Query, b.seqOf(s.After))
	slices.SortFunc(list, asReplayed)
	s.events = make(chan Event, len(list)+1+Buffer)
	for _, e := range list {
		s.events <- Event{State: e.state, Replay: true}
	}
	s.events <- Event{Sentinel: true, Replay: true, Cursor: b.cursorLocked()}
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

// sendLocked sends a change, or ends a subscription that has no room for it.
func (s *Subscription) sendLocked(e *Event) {
	select {
	case s.events <- *e:
		s.tell()
	default:
		if f := s.board.observe.Slow; f != nil {
			f()
		}
		s.endLocked(ErrSlow)
	}
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
	close(s.events)
	if s.leave != nil {
		s.leave()
	}
	s.tell()
}
