package netproxy

import "sync/atomic"

// memory is what bodies may take together.
type memory struct {
	most int64
	used atomic.Int64
}

// room is what one request has taken of a memory. A nil room has no bound.
type room struct {
	of    *memory
	taken int64
}

// take asks for n more bytes.
func (m *memory) take(n int64) bool {
	if m.used.Add(n) > m.most {
		m.used.Add(-n)
		return false
	}
	return true
}

// free gives n bytes back.
func (m *memory) free(n int64) { m.used.Add(-n) }

// take asks for n more bytes.
func (r *room) take(n int64) bool {
	if r == nil {
		return true
	}
	if !r.of.take(n) {
		return false
	}
	r.taken += n
	return true
}

// free gives everything back.
func (r *room) free() {
	r.of.free(r.taken)
	r.taken = 0
}
