// Package budget counts what is in use of something limited, such as bytes of
// bodies or streams.
package budget

import "sync/atomic"

// Budget is so much of something. Its methods may be called from many
// goroutines; Limit is set before.
type Budget struct {
	Limit int64
	used  atomic.Int64
}

// Take takes n, unless that is more than is left.
func (b *Budget) Take(n int64) bool {
	if b.used.Add(n) <= b.Limit {
		return true
	}
	b.used.Add(-n)
	return false
}

// Free gives n back.
func (b *Budget) Free(n int64) { b.used.Add(-n) }

// Used returns how much is taken.
func (b *Budget) Used() int64 { return b.used.Load() }
