package fiber

import (
	"slices"

	"github.com/jobhost/jobhost/host/op"
)

// input is the queue of messages to a fiber. The fiber's mutex protects it. While
// nothing waits in it, it holds next to no memory.
//
// Senders that wait for room are served in the order in which they came, and
// nobody overtakes them.
type input struct {
	most, mostBytes int

	queue [][]byte // queue[head:] waits
	head  int
	bytes int // of what waits
	// shut is what senders are told since nothing more is taken in; nil = open.
	shut     error
	received uint64 // messages that were ever taken in

	receivers op.WaitList[[]byte] // only while the queue is empty
	senders   []*sender           // first come, first served
	bell      func()              // to be rung once; nil = none
}

// sender waits for room for its message.
type sender struct {
	message []byte
	waiter  *op.Waiter[struct{}]
}

// keep is the largest slice that an empty queue keeps.
const keep = 16

func (in *input) len() int { return len(in.queue) - in.head }

// fits reports whether there is room for a message now.
func (in *input) fits(message []byte) bool {
	n := in.len()
	return n == 0 || n < in.most && in.bytes+len(message) <= in.mostBytes
}

// push takes a message in, for which there must be room.
func (in *input) push(message []byte) {
	in.received++
	if in.receivers.Complete(message, nil) {
		return
	}
	if len(in.queue) == cap(in.queue) && in.head > len(in.queue)/2 {
		// Room at the front is used before more is asked for.
		in.queue = slices.Delete(in.queue, 0, in.head)
		in.head = 0
	}
	in.queue = append(in.queue, message)
	in.bytes += len(message)
	in.ring()
}

// peek returns what a receiver gets now, and whether there is anything to get:
// a message, or the end of the input.
func (in *input) peek() (message []byte, ok bool, err error) {
	switch {
	case in.len() > 0:
		return in.queue[in.head], true, nil
	case in.shut != nil:
		return nil, true, ErrInputClosed
	}
	return nil, false, nil
}

// drop takes out what peek returned.
func (in *input) drop() {
	if in.len() == 0 {
		return // it was the end, which stays
	}
	in.bytes -= len(in.queue[in.head])
	in.queue[in.head] = nil
	in.head++
	if in.head == len(in.queue) {
		in.head = 0
		if in.queue = in.queue[:0]; cap(in.queue) > keep {
			in.queue = nil
		}
	}
	in.admit()
}

// admit takes in the messages of those who wait, as far as there is room.
func (in *input) admit() {
	for len(in.senders) > 0 && in.fits(in.senders[0].message) {
		s := in.senders[0]
		in.forget(s)
		if s.waiter.Complete(struct{}{}, nil) {
			in.push(s.message)
		}
	}
}

// forget takes a sender out of those who wait.
func (in *input) forget(s *sender) {
	if i := slices.Index(in.senders, s); i >= 0 {
		in.senders = slices.Delete(in.senders, i, i+1)
	}
	if len(in.senders) == 0 {
		in.senders = nil
	}
}

// dismiss gives all who wait for room an error.
func (in *input) dismiss(err error) {
	for _, s := range in.senders {
		s.waiter.Complete(struct{}{}, err)
	}
	in.senders = nil
}

// shutWith ends what comes in. What is in the queue can still be received.
func (in *input) shutWith(err error) {
	if in.shut != nil {
		return
	}
	in.shut = err
	in.dismiss(err)
	in.receivers.CompleteAll(nil, ErrInputClosed)
	in.ring()
}

// ring rings the bell, once.
func (in *input) ring() {
	if bell := in.bell; bell != nil {
		in.bell = nil
		bell()
	}
}

// clear drops what is in the queue and returns how much that was.
func (in *input) clear() (messages int) {
	messages = in.len()
	in.queue, in.head, in.bytes, in.bell = nil, 0, 0, nil
	return messages
}
