package pending

import (
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Source is where the messages of a stream come from. One goroutine uses it.
type Source interface {
	// Ready reports whether there is a message, or the end.
	Ready() bool
	// Next is as that of [hostcall.Stream].
	Next() (message []byte, ok bool, err error)
	Close()
}

// Stream is something with many messages that a guest may wait for. Whoever makes
// its source ready must call Ring afterwards.
type Stream struct {
	source Source
	bell   atomic.Pointer[bell] // to ring then; nil = none
}

var _ hostcall.Stream = (*Stream)(nil)

// NewStream returns a stream of a source.
func NewStream(s Source) *Stream { return &Stream{source: s} }

// Ring wakes who waits for the stream. It may be called by any goroutine, and
// under locks.
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
func (s *Stream) tell(b *bell)         { s.bell.Store(b) }
