package netproxy

import "github.com/jobhost/jobhost/internal/budget"

// room is what one request has taken of the memory for bodies. A nil room has no bound.
type room struct {
	of    *budget.Budget
	taken int64
}

// take asks for n more bytes.
func (r *room) take(n int64) bool {
	if r == nil {
		return true
	}
	if !r.of.Take(n) {
		return false
	}
	r.taken += n
	return true
}

// free returns everything.
func (r *room) free() {
	r.of.Free(r.taken)
	r.taken = 0
}
