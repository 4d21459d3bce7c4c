package op

import (
	"errors"
	"sync"
)

// ErrClosed is the result of sending to a closed channel, and of receiving from
// one that is closed and empty.
var ErrClosed = errors.New("channel closed")

// Chan is a channel whose operations are ops. Unlike with native channels, sends
// and receives can be combined in one [Choice] with anything else that blocks, on
// both sides: when two choices meet, either both commit their arms, or neither
// does. A choice never meets itself.
//
// A Chan is safe for concurrent use. Waiting senders and receivers are served in
// order of arrival.
type Chan[T any] struct {
	mu        sync.Mutex // protects the fields below
	buf       ring[T]
	senders   parties[T] // waiting only while buf is full
	receivers parties[T] // waiting only while buf is empty
	closed    bool
	full      Policy // of a [Mailbox]; a channel blocks
	lost      uint64 // values dropped to make room for others
}

// NewChan returns a channel with a buffer of size values. With size 0, a send and a
// receive complete together or not at all. It panics if size is negative.
func NewChan[T any](size int) *Chan[T] {
	return &Chan[T]{buf: ring[T]{slots: make([]T, size)}}
}

// Send returns an op that passes v to a receiver or into the buffer. Once the
// channel is closed, even while the op waits, it results in [ErrClosed].
func (c *Chan[T]) Send(v T) Op[struct{}] {
	return Op[struct{}]{node: &sending[T]{c: c, v: v}}
}

// Recv returns an op that results in the next value, or in [ErrClosed] if the
// channel is closed and its buffer empty.
func (c *Chan[T]) Recv() Op[T] {
	return Op[T]{node: (*receiving[T])(c)}
}

// Close closes the channel and reports whether it was open. Waiting senders and
// receivers get [ErrClosed]; buffered values can still be received.
func (c *Chan[T]) Close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.closed = true
	c.senders.dismiss(ErrClosed)
	c.receivers.dismiss(ErrClosed)
	return true
}

// Len is the number of values in the buffer.
func (c *Chan[T]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.n
}

// Cap is the size of the buffer.
func (c *Chan[T]) Cap() int { return len(c.buf.slots) }

// sendLocked sends v on behalf of me. The verdict is agreed if me has committed,
// with the result err.
func (c *Chan[T]) sendLocked(v T, me side) (got verdict, err error) {
	if c.closed {
		return me.commit(), ErrClosed
	}
	peer, got := c.receivers.meet(me)
	if got == agreed {
		peer.value = v
		peer.s.wakeUp()
		return agreed, nil
	}
	if got != notYet || c.buf.full() && c.full == Block {
		return got, nil
	}
	if got = me.commit(); got == agreed {
		err = c.putLocked(v)
	}
	return got, err
}

// putLocked puts v into the buffer, and applies the policy if it is full.
func (c *Chan[T]) putLocked(v T) error {
	if c.buf.full() {
		if c.full == Reject {
			return ErrFull
		}
		c.buf.pop()
		c.lost++
	}
	c.buf.push(v)
	return nil
}

// recvLocked receives on behalf of me. The verdict is agreed if me has committed,
// with the result v, err.
func (c *Chan[T]) recvLocked(me side) (v T, got verdict, err error) {
	if c.buf.n > 0 {
		if got = me.commit(); got != agreed {
			return v, got, nil
		}
		v = c.buf.pop()
		// The free place goes to the first waiting sender. An arm of me's own
		// session isn't met: the session is already decided.
		if peer, got := c.senders.meet(side{}); got == agreed {
			c.buf.push(peer.value)
			peer.s.wakeUp()
		}
		return v, agreed, nil
	}
	peer, got := c.senders.meet(me)
	if got == agreed {
		v = peer.value
		peer.s.wakeUp()
		return v, agreed, nil
	}
	if got == notYet && c.closed {
		return v, me.commit(), ErrClosed
	}
	return v, got, nil
}

// sending is the node of a send.
type sending[T any] struct {
	c *Chan[T]
	v T
}

func (n *sending[T]) arms() int { return 1 }

func (n *sending[T]) take(s *session, _ int) (_ struct{}, ok bool, err error) {
	if p, ok := parkedAs[*party[T]](s); ok {
		s.chosen()
		return struct{}{}, true, p.err
	}
	n.c.mu.Lock()
	got, err := n.c.sendLocked(n.v, side{})
	n.c.mu.Unlock()
	if got != agreed {
		return struct{}{}, false, nil
	}
	s.chosen()
	return struct{}{}, true, err
}

func (n *sending[T]) block(s *session, _ int) {
	c, p := n.c, &party[T]{side: side{s, s.arm}, c: n.c, value: n.v}
	s.slots[s.arm] = p
	c.mu.Lock()
	defer c.mu.Unlock()
	got, err := c.sendLocked(n.v, p.side)
	switch got {
	case agreed:
		p.err = err
		s.wakeUp()
	case notYet:
		c.senders.push(p)
	case gone: // another arm of s has won
	}
}

// receiving is the node of a receive. The channel itself serves as the node, so
// that creating the op costs nothing.
type receiving[T any] Chan[T]

func (n *receiving[T]) arms() int { return 1 }

func (n *receiving[T]) take(s *session, _ int) (v T, ok bool, err error) {
	if p, ok := parkedAs[*party[T]](s); ok {
		s.chosen()
		return p.value, true, p.err
	}
	c := (*Chan[T])(n)
	c.mu.Lock()
	v, got, err := c.recvLocked(side{})
	c.mu.Unlock()
	if got != agreed {
		return v, false, nil
	}
	s.chosen()
	return v, true, err
}

func (n *receiving[T]) block(s *session, _ int) {
	c := (*Chan[T])(n)
	p := &party[T]{side: side{s, s.arm}, c: c}
	s.slots[s.arm] = p
	c.mu.Lock()
	defer c.mu.Unlock()
	v, got, err := c.recvLocked(p.side)
	switch got {
	case agreed:
		p.value, p.err = v, err
		s.wakeUp()
	case notYet:
		c.receivers.push(p)
	case gone: // another arm of s has won
	}
}
