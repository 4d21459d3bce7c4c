package hub

import "sync/atomic"

// Budget bounds by the sizes of the values what subscriptions of one or several hubs
// have unread together. What they asked for of the past does not count: most of it
// is remembered by the hub.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns one of that many bytes.
func NewBudget(bytes int) *Budget { return &Budget{limit: int64(bytes)} }

// take counts in an item of a size, if there is room for it or it is the only one that a
// subscription has unread.
func (b *Budget) take(size int, only bool) bool {
	if b == nil {
		return true
	}
	if b.used.Add(int64(size)) > b.limit && !only {
		b.used.Add(-int64(size))
		return false
	}
	return true
}

func (b *Budget) free(size int) {
	if b != nil {
		b.used.Add(-int64(size))
	}
}

// Used is how many bytes are unread.
func (b *Budget) Used() int64 { return b.used.Load() }
