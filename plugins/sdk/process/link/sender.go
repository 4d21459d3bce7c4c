package link

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
)

// Bounds of what is sent over the stream.
const (
	// MaxMessage bounds a message; either side refuses to receive a larger one.
	MaxMessage = 16 << 20
	// MaxPiped bounds a message sent over pipes: a batch, or a frame that isn't cut. It is smaller, as
	// decoding a malicious message can take many times its size.
	MaxPiped = 4 << 20
	// Window is how much may be in transit and unread. A fixed window saves gRPC the pings by which it would
	// estimate one, one for each message where they arrive one at a time.
	Window = 16 << 20
	// maxBatch is the size from which nothing is added to a batch.
	maxBatch = 1 << 20
	// maxFrame is the largest frame that isn't cut into pieces.
	maxFrame = 2 << 20
	// maxWaiting is how much may wait to be sent: beyond it senders block, too.
	maxWaiting = 4 << 20
)

// Sender sends frames in batches. A goroutine that finds no other one sending sends
// everything that waits, so a single frame is sent at once, and many go together.
type Sender[F proto.Message] struct {
	send func([]F) error
	cut  func(F, []byte, bool) F // makes a frame, of the same run, for a piece of an encoded frame
	// crowded reports whether others may be about to send something.
	crowded func() bool

	since atomic.Int64 // when sending the current batch began, in Unix nanoseconds; 0 = none is being sent

	mu      sync.Mutex // protects the rest
	room    sync.Cond
	waiting []sized[F]
	bytes   int // of waiting
	sending bool
	err     error // the first error of send, after which nothing is sent
	batch   []F   // being sent; reused
}

type sized[F any] struct {
	frame F
	size  int
}

// NewSender returns a sender. send is called by one goroutine at a time. cut makes a frame for a piece.
// crowded reports whether several goroutines may have something to send at about the same time.
func NewSender[F proto.Message](send func([]F) error, cut func(of F, data []byte, last bool) F, crowded func() bool) *Sender[F] {
	s := &Sender[F]{send: send, cut: cut, crowded: crowded}
	s.room.L = &s.mu
	return s
}

// Send sends a frame after those sent before. It blocks while too much is waiting, and returns before
// the frame is sent if another goroutine sends it. size is the approximate size of the frame, rather
// too large than too small; the frame must not be modified any more.
func (s *Sender[F]) Send(frame F, size int) error {
	if size <= maxFrame {
		return s.put([]sized[F]{{frame, size}}, size)
	}
	encoded, err := proto.Marshal(frame)
	if err != nil {
		return err
	}
	var pieces []sized[F]
	for total := len(encoded); len(encoded) > 0; {
		n := min(len(encoded), maxFrame/2)
		pieces = append(pieces, sized[F]{s.cut(frame, encoded[:n:n], n == len(encoded)), n})
		if encoded = encoded[n:]; len(encoded) == 0 {
			return s.put(pieces, total)
		}
	}
	return nil
}

// put adds frames that stay together.
func (s *Sender[F]) put(frames []sized[F], size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.bytes > maxWaiting && s.err == nil {
		s.room.Wait()
	}
	if s.err != nil {
		return s.err
	}
	s.waiting = append(s.waiting, frames...)
	s.bytes += size
	if s.sending {
		return nil
	}
	s.sending = true
	if s.batchLocked(); len(s.waiting) == 0 || s.err != nil {
		s.sending = false
		return s.err
	}
	// Under load there is always more, and the sender of the first batch has other things to do.
	go s.drain()
	return nil
}

// drain sends batches until nothing is waiting.
func (s *Sender[F]) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) > 0 && s.err == nil {
		s.batchLocked()
	}
	s.sending = false
}

// batchLocked sends a batch. Its caller is the one that has set sending.
func (s *Sender[F]) batchLocked() {
	// Goroutines that are about to send something get the chance to join, as long as there are any.
	for last := 0; len(s.waiting) > last && s.crowded(); {
		last = len(s.waiting)
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	n, size := 0, 0
	for n < len(s.waiting) && (n == 0 || size+s.waiting[n].size <= maxBatch) {
		size += s.waiting[n].size
		s.batch = append(s.batch, s.waiting[n].frame)
		n++
	}
	left := copy(s.waiting, s.waiting[n:])
	clear(s.waiting[left:])
	s.waiting = s.waiting[:left]
	s.mu.Unlock()
	s.since.Store(time.Now().UnixNano())
	err := s.send(s.batch)
	s.since.Store(0)
	s.mu.Lock()
	clear(s.batch)
	s.batch = s.batch[:0]
	s.bytes -= size
	if s.err == nil {
		s.err = err
	}
	s.room.Broadcast()
}

// Stuck returns how long the current batch has not been accepted.
func (s *Sender[F]) Stuck() time.Duration {
	since := s.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(time.Unix(0, since))
}

// Close makes all further sends fail with err.
func (s *Sender[F]) Close(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.waiting, s.bytes = nil, 0
	s.room.Broadcast()
}
