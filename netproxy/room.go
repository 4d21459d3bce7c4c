package netproxy

import "sync/atomic"

// memory limits the bytes that all bodies take together.
type memory struct {
	most int64
	used atomic.Int64
}

// room is the part of a memory that one request has taken. A nil room has no limit.
type room struct {
	of    *memory
	taken int64
}

// take reserves n more bytes, if there is room.
func (m *memory) take(n int64) bool {
	if m.used.Add(n) > m.most {
		m.used.Add(-n)
		return false
	}
	return true
}

// free returns n bytes.
func (m *memory) free(n int64) { m.used.Add(-n) }

// take reserves n more bytes, if there is room.
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

// free returns everything.
func (r *room) free() {
	r.of.free(r.taken)
	r.taken = 0
}
