package client

import (
	"io"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// maxAhead is how many bytes of jobs are made ready to be sent; when there are
// more, no spec is taken.
const maxAhead = 256 << 10

// specReader is the body of a batch: a line for each spec. Specs are taken in
// a goroutine of its own, so that what is ready is sent while the next spec is
// long in coming, in as few packets as possible. That goroutine isn't waited
// for, since a sequence can't be hurried: it ends with the first spec after
// Close.
type specReader struct {
	sent   atomic.Int64 // specs that were taken
	filler sync.WaitGroup

	mu      sync.Mutex // protects the fields below
	changed *sync.Cond // any of them
	ahead   []byte     // made and not read
	ended   bool       // there are no more specs
	closed  bool       // nothing is read any more
}

func newSpecReader(specs iter.Seq[jobhost.Spec]) *specReader {
	s := &specReader{}
	s.changed = sync.NewCond(&s.mu)
	s.filler.Go(func() { s.fill(specs) })
	return s
}

func (s *specReader) fill(specs iter.Seq[jobhost.Spec]) {
	var line []byte
	for spec := range specs {
		nameJob(&spec)
		line = append(wire.AppendSubmit(line[:0], &spec), '\n')
		if !s.add(line) {
			break
		}
	}
	s.mu.Lock()
	s.ended = true
	s.changed.Broadcast()
	s.mu.Unlock()
}

// add adds a line when there is room, and reports whether it is still wanted.
func (s *specReader) add(line []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ahead) >= maxAhead && !s.closed {
		s.changed.Wait()
	}
	if s.closed {
		return false
	}
	s.ahead = append(s.ahead, line...)
	s.sent.Add(1)
	s.changed.Broadcast()
	return true
}

// Read implements [io.Reader]: it waits for the first byte only.
func (s *specReader) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ahead) == 0 && !s.ended && !s.closed {
		s.changed.Wait()
	}
	switch {
	case s.closed:
		return 0, io.ErrClosedPipe
	case len(s.ahead) == 0:
		return 0, io.EOF
	}
	n := copy(b, s.ahead)
	s.ahead = append(s.ahead[:0], s.ahead[n:]...)
	s.changed.Broadcast()
	return n, nil
}

// Close implements [io.Closer]. It doesn't wait.
func (s *specReader) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.changed.Broadcast()
	return nil
}
