package hub

import "sync/atomic"

// Budget bounds the total size of the unread values of subscriptions, of one or several
// hubs. The past that a subscription asked for does not count: most of it is in the
// hub's memory anyway.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns a budget of that many bytes.
func NewBudget(bytes int) *Budget { return &Budget{limit: int64(bytes)} }

// take adds an item of a size, if it fits into the budget or is the only unread item of
// its subscription.
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

// Used returns how many bytes are unread.
func (b *Budget) Used() int64 { return b.used.Load() }
