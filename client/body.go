package client

import (
	"io"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// specReader is the body of a batch: a line for each spec, made when the
// transport asks for it. The transport reads from a goroutine of its own, and
// may close the body meanwhile: Close doesn't wait for a spec that is long in
// coming.
type specReader struct {
	sent   atomic.Int64 // specs that were taken
	closed atomic.Bool

	mu   sync.Mutex // protects the fields below
	next func() (jobhost.Spec, bool)
	stop func()
	line []byte // what has not been read of buffer
	// buffer holds the last line.
	buffer []byte
}

func newSpecReader(specs iter.Seq[jobhost.Spec]) *specReader {
	next, stop := iter.Pull(specs)
	return &specReader{next: next, stop: stop}
}

// Read implements [io.Reader].
func (s *specReader) Read(b []byte) (int, error) {
	defer s.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(b) {
		if len(s.line) > 0 {
			copied := copy(b[n:], s.line)
			s.line = s.line[copied:]
			n += copied
			continue
		}
		if s.closed.Load() {
			return n, io.ErrClosedPipe
		}
		spec, ok := s.next()
		if !ok {
			return n, io.EOF
		}
		s.sent.Add(1)
		nameJob(&spec)
		s.buffer = append(wire.AppendSubmit(s.buffer[:0], &spec), '\n')
		s.line = s.buffer
	}
	return n, nil
}

// Close implements [io.Closer].
func (s *specReader) Close() error {
	s.closed.Store(true)
	s.release()
	return nil
}

// release ends the sequence of specs when the reader is closed. Whoever of
// Read and Close is the last to come here does it.
func (s *specReader) release() {
	if s.closed.Load() && s.mu.TryLock() {
		s.stop()
		s.mu.Unlock()
	}
}
