package pending

import (
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Source provides the messages of a stream. It is used by one goroutine.
type Source interface {
	// Ready reports whether there is a message, or the stream has ended.
	Ready() bool
	// Next is like that of [hostcall.Stream].
	Next() (message []byte, ok bool, err error)
	Close()
}

// Stream is a sequence of messages that a guest may wait for. After its source
// has become ready, Ring must be called.
type Stream struct {
	source Source
	bell   atomic.Pointer[bell] // to ring then; nil = none
}

var _ hostcall.Stream = (*Stream)(nil)

// NewStream returns a stream of a source.
func NewStream(s Source) *Stream { return &Stream{source: s} }

// Ring wakes the goroutine that waits for the stream. It may be called from any
// goroutine, and under locks.
func (s *Stream) Ring() {
	if b := s.bell.Load(); b != nil {
		b.ring()
	}
}

// Next implements [hostcall.Stream].
func (s *Stream) Next() ([]byte, bool, error) { return s.source.Next() }

// Drop implements [hostcall.Pending].
func (s *Stream) Drop() { s.source.Close() }

func (s *Stream) ready(time.Time) bool { return s.source.Ready() }
func (s *Stream) setBell(b *bell)      { s.bell.Store(b) }
