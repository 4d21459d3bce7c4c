package op

import (
	"errors"
	"fmt"
)

// ErrFull is the result of sending to a full [Mailbox] that rejects.
var ErrFull = errors.New("mailbox full")

// Policy says what happens to a message for a full [Mailbox].
type Policy uint8

// The policies.
const (
	Block      Policy = iota // its sender waits for space, first come, first served
	Reject                   // its sender gets [ErrFull]
	DropOldest               // it replaces the oldest message, which is lost
)

// Mailbox is a bounded queue of messages from many senders to one or more
// receivers, with a policy for when it is full. It is safe for concurrent use.
type Mailbox[T any] struct{ c Chan[T] }

// NewMailbox returns a mailbox for up to size messages. It panics if size isn't
// positive, or the policy is unknown.
func NewMailbox[T any](size int, full Policy) *Mailbox[T] {
	if size <= 0 || full > DropOldest {
		panic(fmt.Sprintf("op: mailbox with room for %d, policy %d", size, full)) //nolint:forbidigo // a fault of the program, as in package sync
	}
	return &Mailbox[T]{c: Chan[T]{buf: ring[T]{slots: make([]T, size)}, full: full}}
}

// Send returns an op that puts a message into the mailbox, or passes it to a
// waiting receiver. It waits only with [Block]. Once the mailbox is closed, even
// while the op waits, it results in [ErrClosed].
func (m *Mailbox[T]) Send(v T) Op[struct{}] { return m.c.Send(v) }

// Recv returns an op that takes the oldest message, or results in [ErrClosed] if
// the mailbox is closed and empty.
func (m *Mailbox[T]) Recv() Op[T] { return m.c.Recv() }

// Close closes the mailbox and reports whether it was open. Messages in it can
// still be received.
func (m *Mailbox[T]) Close() bool { return m.c.Close() }

// Len is the number of messages in the mailbox.
func (m *Mailbox[T]) Len() int { return m.c.Len() }

// Lost is the number of messages that were replaced by others.
func (m *Mailbox[T]) Lost() uint64 {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	return m.c.lost
}
