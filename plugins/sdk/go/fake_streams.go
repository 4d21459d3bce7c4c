//go:build !wasip1

package jobhost

import (
	"cmp"
	"slices"
	"time"
)

// Message is a message to a fiber in [Run].
type Message struct {
	Data []byte
	// After is when it is sent, relative to the beginning of the attempt.
	After time.Duration
}

// fakeStream is something with several messages.
type fakeStream struct {
	queue []Message   // by time
	ends  bool        // after the last message
	watch *fakeFilter // of states; nil = it is the inbox
}

// when returns when there is something to read.
func (s *fakeStream) when() time.Duration {
	switch {
	case len(s.queue) > 0:
		return s.queue[0].After
	case s.ends:
		return 0
	}
	return never
}

// add inserts a message by its time.
func (s *fakeStream) add(m Message) {
	i := 0
	for i < len(s.queue) && s.queue[i].After <= m.After {
		i++
	}
	s.queue = slices.Insert(s.queue, i, m)
}

func (h *fake) Receive() int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at.Messages == nil {
		return int32(ErrDenied)
	}
	if h.inbox == 0 {
		queue := slices.Clone(h.at.Messages)
		slices.SortStableFunc(queue, func(a, b Message) int { return cmp.Compare(a.After, b.After) })
		h.inbox = h.open(&fakeOp{stream: &fakeStream{queue: queue, ends: true}})
	}
	return h.inbox
}

func (h *fake) Next(number int32) ([]byte, Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.op(number)
	if o == nil || o.stream == nil {
		return nil, ErrInvalid
	}
	at := o.stream.when()
	if h.pass(max(at, h.clock)) || at == never {
		return nil, ErrStopped
	}
	h.idle = 0
	queue := o.stream.queue
	if len(queue) == 0 {
		return nil, ErrClosed
	}
	o.stream.queue = queue[1:]
	return slices.Clone(queue[0].Data), 0
}
