package fiber

import (
	"slices"

	"github.com/jobhost/jobhost/host/op"
)

// input is the queue of messages to a fiber. The fiber's mutex protects it. When
// empty it holds hardly any memory.
//
// Senders waiting for room are served strictly in order of arrival.
type input struct {
	most, mostBytes int

	queue [][]byte // queue[head:] is waiting
	head  int
	bytes int // of the waiting messages
	// shut is the error for senders once no more messages are accepted; nil =
	// open.
	shut     error
	received uint64 // messages ever accepted

	receivers op.WaitList[[]byte] // only while the queue is empty
	senders   []*sender           // in order of arrival
	bell      func()              // to be called once; nil = none
}

// sender waits for room for its message.
type sender struct {
	message []byte
	waiter  *op.Waiter[struct{}]
}

// keep is the capacity up to which an empty queue keeps its slice.
const keep = 16

func (in *input) len() int { return len(in.queue) - in.head }

// fits reports whether there is room for a message now.
func (in *input) fits(message []byte) bool {
	n := in.len()
	return n == 0 || n < in.most && in.bytes+len(message) <= in.mostBytes
}

// push accepts a message, for which there must be room.
func (in *input) push(message []byte) {
	in.received++
	if in.receivers.Complete(message, nil) {
		return
	}
	if len(in.queue) == cap(in.queue) && in.head > len(in.queue)/2 {
		// Reuse the space at the front before growing.
		in.queue = slices.Delete(in.queue, 0, in.head)
		in.head = 0
	}
	in.queue = append(in.queue, message)
	in.bytes += len(message)
	in.ring()
}

// peek returns what a receiver would get now, and whether there is anything: a
// message, or the end of the input.
func (in *input) peek() (message []byte, ok bool, err error) {
	switch {
	case in.len() > 0:
		return in.queue[in.head], true, nil
	case in.shut != nil:
		return nil, true, ErrInputClosed
	}
	return nil, false, nil
}

// drop removes what peek returned.
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

// admit accepts the messages of waiting senders, as far as there is room.
func (in *input) admit() {
	for len(in.senders) > 0 && in.fits(in.senders[0].message) {
		s := in.senders[0]
		in.forget(s)
		if s.waiter.Complete(struct{}{}, nil) {
			in.push(s.message)
		}
	}
}

// forget removes a sender from the waiting ones.
func (in *input) forget(s *sender) {
	if i := slices.Index(in.senders, s); i >= 0 {
		in.senders = slices.Delete(in.senders, i, i+1)
	}
	if len(in.senders) == 0 {
		in.senders = nil
	}
}

// dismiss fails all waiting senders with an error.
func (in *input) dismiss(err error) {
	for _, s := range in.senders {
		s.waiter.Complete(struct{}{}, err)
	}
	in.senders = nil
}

// shutWith closes the input. Queued messages can still be received.
func (in *input) shutWith(err error) {
	if in.shut != nil {
		return
	}
	in.shut = err
	in.dismiss(err)
	in.receivers.CompleteAll(nil, ErrInputClosed)
	in.ring()
}

// ring calls the bell, once.
func (in *input) ring() {
	if bell := in.bell; bell != nil {
		in.bell = nil
		bell()
	}
}

// clear drops the queued messages and returns their number.
func (in *input) clear() (messages int) {
	messages = in.len()
	in.queue, in.head, in.bytes, in.bell = nil, 0, 0, nil
	return messages
}
