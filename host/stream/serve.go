package stream

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
)

// want returns how many bytes a reader takes now, and its error, or that it has to
// wait. The pipe's mutex is held.
type want func(p *Pipe) (n int, ok bool, err error)

func some(most int) want {
	return func(p *Pipe) (int, bool, error) {
		if len(p.buf) > 0 {
			return min(len(p.buf), max(most, 1)), true, nil
		}
		return 0, p.closed, p.endLocked()
	}
}

func line(p *Pipe) (int, bool, error) {
	i := bytes.IndexByte(p.buf, '\n')
	switch {
	case i >= 0:
		return i + 1, true, nil
	case p.closed && len(p.buf) > 0 && p.reason == nil:
		return len(p.buf), true, nil
	case p.closed:
		return 0, true, p.endLocked()
	case len(p.buf) >= p.size:
		return 0, true, ErrTooLong
	}
	return 0, false, nil
}

func exactly(most int) want {
	return func(p *Pipe) (int, bool, error) {
		err := p.endLocked()
		switch {
		case most <= len(p.buf):
			return most, true, nil
		case p.closed && len(p.buf) > 0 && errors.Is(err, io.EOF):
			return 0, true, io.ErrUnexpectedEOF
		case p.closed:
			return 0, true, err
		case most > p.size:
			return 0, true, ErrTooLong
		}
		return 0, false, nil
	}
}

// endLocked is the error that readers get at the end; nil before that.
func (p *Pipe) endLocked() error {
	if !p.closed {
		return nil
	}
	return cmp.Or(p.reason, io.EOF)
}

// roomLocked reports whether data can be written now, or never.
func (p *Pipe) roomLocked(data []byte) (n int, ok bool, err error) {
	switch {
	case p.closed:
		return 0, true, cmp.Or(p.reason, io.ErrClosedPipe)
	case len(p.writers) > 0:
		return 0, false, nil // others are first
	}
	return len(data), p.fitsLocked(data), nil
}

// fitsLocked reports whether there is space for data. If a reader waits for more than
// there is, and so frees no space, data fits as long as the pipe isn't full.
func (p *Pipe) fitsLocked(data []byte) bool {
	return len(p.buf) == 0 || len(p.buf)+len(data) <= p.size || len(p.readers) > 0 && len(p.buf) < p.size
}

func (p *Pipe) takeLocked(n int) []byte {
	data := slices.Clone(p.buf[:n])
	p.buf = p.buf[:copy(p.buf, p.buf[n:])]
	return data
}

// serveLocked serves the waiting readers and writers, until the first of each has to
// wait.
func (p *Pipe) serveLocked() {
	for p.serveReaderLocked() || p.serveWriterLocked() {
	}
}

func (p *Pipe) serveReaderLocked() bool {
	if len(p.readers) == 0 {
		return false
	}
	r := p.readers[0]
	n, ok, err := r.want(p)
	if !ok {
		return false
	}
	p.readers = without(p.readers, r)
	if r.w.Complete(slices.Clone(p.buf[:n]), err) {
		p.takeLocked(n)
	}
	return true
}

func (p *Pipe) serveWriterLocked() bool {
	if len(p.writers) == 0 {
		return false
	}
	w := p.writers[0]
	if !p.closed && !p.fitsLocked(w.data) {
		return false
	}
	p.writers = without(p.writers, w)
	if p.closed {
		w.w.Complete(0, cmp.Or(p.reason, io.ErrClosedPipe))
		return true
	}
	before := len(p.buf)
	p.buf = append(p.buf, w.data...) // before Complete: then the data belongs to the writer again
	if !w.w.Complete(len(w.data), nil) {
		p.buf = p.buf[:before]
	}
	return true
}

// withdraw removes a reader or writer that has lost, and serves those that it held
// up.
func (p *Pipe) withdraw(remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	remove()
	p.serveLocked()
}

func without[T comparable](list []T, one T) []T {
	if i := slices.Index(list, one); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
