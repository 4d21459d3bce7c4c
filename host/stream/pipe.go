// Package stream has streams of bytes that are read and written by ops.
//
// A [Pipe] is a bounded buffer between writers and readers. [From] fills one from an
// [io.ReadCloser], [To] empties one into an [io.WriteCloser]: files, sockets and the
// like block the goroutine that uses them, so each gets a goroutine of a scope, and
// everything else waits for the pipe. A read that loses its choice therefore takes
// nothing, and the data is there for the next one.
package stream

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/jobhost/jobhost/host/op"
)

// ErrTooLong is the result of reading a line, or a number of bytes, that doesn't fit
// into the pipe.
var ErrTooLong = errors.New("longer than the pipe has room for")

// Pipe is a bounded buffer of bytes. Readers and writers are each served in order of
// arrival, and single writes are not interleaved. It is safe for concurrent use.
type Pipe struct {
	size    int
	onClose func() // may be nil

	mu      sync.Mutex // protects the fields below
	buf     []byte     // unread bytes
	closed  bool
	reason  error // for readers, once buf is empty; set with closed
	readers []*reader
	writers []*writer
}

// reader waits for bytes.
type reader struct {
	want want
	w    *op.Waiter[[]byte]
}

// writer waits for space.
type writer struct {
	data []byte
	w    *op.Waiter[int]
}

// NewPipe returns a pipe that holds size bytes. It panics if size isn't positive.
func NewPipe(size int) *Pipe {
	if size <= 0 {
		panic(fmt.Sprintf("stream: pipe with room for %d bytes", size)) //nolint:forbidigo // a fault of the program, as in package sync
	}
	return &Pipe{size: size}
}

// ReadOp returns an op that takes what there is, at least one byte and at most most.
// At the end it results in [io.EOF], or in the reason the pipe was closed with.
func (p *Pipe) ReadOp(most int) op.Op[[]byte] { return p.read(some(most)) }

// LineOp returns an op that takes a line including its newline, which the last line
// may lack. A line that doesn't fit into the pipe results in [ErrTooLong], and nothing
// is taken.
func (p *Pipe) LineOp() op.Op[[]byte] { return p.read(line) }

// ExactOp returns an op that takes n bytes. If fewer arrive it takes none, and results
// in [io.ErrUnexpectedEOF], in [io.EOF] if there are none, or in the reason the pipe
// was closed with.
func (p *Pipe) ExactOp(n int) op.Op[[]byte] { return p.read(exactly(n)) }

// WriteOp returns an op that writes data, all of it or nothing, when there is space,
// and results in its length. data must not be changed until then. Data larger than the
// pipe is written when the pipe is empty. Once the pipe is closed, even while the op
// waits, it results in [io.ErrClosedPipe] or in the reason the pipe was closed with.
func (p *Pipe) WriteOp(data []byte) op.Op[int] {
	return op.New(
		func() (int, bool, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			n, ok, err := p.roomLocked(data)
			if ok && err == nil {
				p.buf = append(p.buf, data...)
				p.serveLocked()
			}
			return n, ok, err
		},
		func(w *op.Waiter[int]) {
			p.mu.Lock()
			defer p.mu.Unlock()
			mine := &writer{data: data, w: w}
			p.writers = append(p.writers, mine)
			w.OnAbort(func() { p.withdraw(func() { p.writers = without(p.writers, mine) }) })
			p.serveLocked()
		},
	)
}

func (p *Pipe) read(want want) op.Op[[]byte] {
	return op.New(
		func() (data []byte, ok bool, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.readers) > 0 {
				return nil, false, nil // others are first
			}
			n, ok, err := want(p)
			if ok {
				data = p.takeLocked(n)
				p.serveLocked()
			}
			return data, ok, err
		},
		func(w *op.Waiter[[]byte]) {
			p.mu.Lock()
			defer p.mu.Unlock()
			mine := &reader{want: want, w: w}
			p.readers = append(p.readers, mine)
			w.OnAbort(func() { p.withdraw(func() { p.readers = without(p.readers, mine) }) })
			p.serveLocked()
		},
	)
}

// Close says that nothing more will be written. Later calls do nothing.
func (p *Pipe) Close() error { return p.CloseWithError(nil) }

// CloseWithError is Close with a reason, which readers get after the remaining data,
// and writers at once; nil is [io.EOF] for readers and [io.ErrClosedPipe] for writers.
// It returns nil.
func (p *Pipe) CloseWithError(reason error) error {
	p.mu.Lock()
	first := !p.closed
	if first {
		p.closed, p.reason = true, reason
		p.serveLocked()
	}
	p.mu.Unlock()
	if first && p.onClose != nil {
		p.onClose()
	}
	return nil
}

// Len is the number of bytes that can be read.
func (p *Pipe) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.buf)
}

// Read implements [io.Reader].
func (p *Pipe) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	data, err := op.PerformRaw(p.ReadOp(len(b)))
	return copy(b, data), err
}

// Write implements [io.Writer]. It returns when all of b is in the pipe, possibly in
// several parts with other writes in between.
func (p *Pipe) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		part := b[:min(len(b), p.size)]
		if _, err = op.PerformRaw(p.WriteOp(part)); err == nil {
			n += len(part)
			b = b[len(part):]
		}
	}
	return n, err
}

var _ io.ReadWriteCloser = (*Pipe)(nil)
