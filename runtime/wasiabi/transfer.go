package wasiabi

import (
	"errors"
	"io"
)

// piece is how much is read or written between two looks at Stop: some
// milliseconds at most, even of lines that are all empty.
const piece = 256 << 10

// gatherBytes is up to how much several buffers are written in one piece, so
// that a line that a library hands over in two buffers stays whole in a file
// that others append to.
const gatherBytes = 64 << 10

// transfer reads or writes the buffers of a list and puts down how many bytes
// it were. After some an error doesn't show: it will be back.
func (s *System) transfer(m memory, list, count, result uint32, move func(v iovecs) (int, Errno)) Errno {
	if _, e := m.view(result, 4); e != OK {
		return e
	}
	v, e := m.iovecs(list, count)
	if e != OK {
		return e
	}
	n, e := move(v)
	if n > 0 || e == OK {
		return m.put32(result, uint32(n))
	}
	return e
}

// each hands over one buffer after the other, in pieces, until one isn't done
// in full.
func (s *System) each(v iovecs, do func(b []byte) (int, Errno)) (done int, e Errno) {
	looked := 0
	for i := range v.len() {
		for b := v.buffer(i); len(b) > 0; {
			part := b[:min(len(b), piece)]
			n, e := do(part)
			if done += n; e != OK || n < len(part) {
				return done, e
			}
			b = b[n:]
			if done-looked >= piece {
				if looked = done; s.stopped() {
					return done, EINTR
				}
			}
		}
	}
	return done, OK
}

// eachOfFile is each for what package os does, at a distance from where it began.
func (s *System) eachOfFile(v iovecs, do func(b []byte, done int64) (int, error)) (int, Errno) {
	done := int64(0)
	return s.each(v, func(b []byte) (int, Errno) {
		n, err := do(b, done)
		done += int64(n)
		if errors.Is(err, io.EOF) {
			return n, OK
		}
		return n, errnoOf(err)
	})
}

// writeFile is eachOfFile for what counts.
func (s *System) writeFile(v iovecs, do func(b []byte, done int64) (int, error)) (int, Errno) {
	over := OK
	write := func(b []byte, done int64) (int, error) {
		allowed := b
		if s.maxWrite > 0 {
			allowed = b[:min(int64(len(b)), s.maxWrite-s.written)]
			if len(allowed) < len(b) {
				over = EDQUOT
			}
		}
		if len(allowed) == 0 {
			return 0, io.EOF
		}
		n, err := do(allowed, done)
		s.written += int64(n)
		return n, err
	}
	if v.len() > 1 && v.total <= gatherBytes {
		v = v.gather()
	}
	n, e := s.eachOfFile(v, write)
	if e == OK {
		e = over
	}
	return n, e
}
