package wasiabi

import (
	"errors"
	"io"
)

// piece is how much is read or written between two checks of Stop: some
// milliseconds at most, even if all lines are empty.
const piece = 256 << 10

// gatherBytes is the size up to which several buffers are written at once, so
// that a line that a library passes in two buffers stays whole in a file that
// others append to.
const gatherBytes = 64 << 10

// transfer reads or writes the buffers of a list and stores the number of
// bytes. If some were transferred an error is not returned: it will recur.
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

// each processes one buffer after the other, in pieces, until one isn't
// processed completely.
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

// eachOfFile is each for functions of package os, which get the distance from the start.
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

// writeFile is eachOfFile for writes, which are charged.
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
