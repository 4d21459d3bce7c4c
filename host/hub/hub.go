// Package hub is a bounded publish/subscribe channel that remembers its last items,
// so that a reader who was away can catch up by sequence number.
//
//	Publish ─► number it ─► remember it ─► append it to each subscription of its keys
//
// Publishing never waits for a reader: a subscription whose buffer is full is closed
// with [ErrSlow] after its remaining items, and so is one that asked for the past and
// did not read it before the hub forgot it. Nothing is dropped silently. The package
// starts no goroutines.
package hub

import (
	"cmp"
	"slices"
	"sync"
)

// Options configure a hub.
type Options struct {
	// Replay is how many items are remembered for subscriptions that ask for the
	// past; 0 = none.
	Replay int
	// Buffer is how many unread items a subscription may have, not counting those it
	// asked for from the past; 0 = 256.
	Buffer int
	// ReplayBytes and BufferBytes are bounds on the sizes of the same values, as
	// reported by the function given to [NewSized]; 0 = 64 MiB and 16 MiB. A
	// subscription with nothing unread accepts an item of any size.
	ReplayBytes, BufferBytes int
	// Budget bounds the unread items of all subscriptions, including those of other
	// hubs with the same budget; nil = no bound.
	Budget *Budget
	// Slow is called for each subscription that is closed with [ErrSlow], under the
	// hub's lock, so it must be quick; may be nil.
	Slow func()
}

// Item is a published value.
type Item[T any] struct {
	// Seq counts the items of the hub from 1.
	Seq   uint64
	Key   string
	Also  [maxAlso]string // further keys; empty = none
	Value T
}

// maxAlso is how many further keys an item may have.
const maxAlso = 2

// has reports whether an item is for subscriptions to key; empty = all.
func (i *Item[T]) has(key string) bool {
	return key == "" || i.Key == key || i.Also[0] == key || i.Also[1] == key
}

// Hub passes items on to its subscriptions. It is safe for concurrent use.
type Hub[T any] struct {
	options Options
	size    func(T) int // nil = all values are small

	mu     sync.Mutex // protects the fields below and the links between subscriptions
	ring   ring[T]
	all    *Subscription[T]            // head of the list of those to all keys
	keyed  map[string]*Subscription[T] // heads of the lists of those to one key
	closed error                       // the reason; nil = open
	stats  Stats
}

// Stats are numbers about a hub.
type Stats struct {
	Published     uint64 // items since the hub was created; also the last sequence number
	Subscriptions int    // open now
	Slow          uint64 // subscriptions that were closed with ErrSlow
}

// New returns an open hub for values of about the same size.
func New[T any](o Options) *Hub[T] { return NewSized[T](o, nil) }

// NewSized returns an open hub for values that refer to memory: size returns
// how many bytes. It is called under the hub's locks, possibly more than once
// per value, so it must be quick and consistent.
func NewSized[T any](o Options, size func(T) int) *Hub[T] {
	o.Replay = max(o.Replay, 0)
	o.Buffer = cmp.Or(max(o.Buffer, 0), 256)
	o.ReplayBytes = cmp.Or(max(o.ReplayBytes, 0), 64<<20)
	o.BufferBytes = cmp.Or(max(o.BufferBytes, 0), 16<<20)
	h := &Hub[T]{options: o, size: size, keyed: map[string]*Subscription[T]{}}
	h.ring.slots = make([]Item[T], o.Replay)
	return h
}

func (h *Hub[T]) sizeOf(v T) int {
	if h.size == nil {
		return 0
	}
	return h.size(v)
}

// Publish gives v the next sequence number, passes it on to the subscriptions
// of key, of up to two further keys, and to those of all keys, and returns the
// number. It doesn't wait for readers. After Close it does nothing and returns 0.
func (h *Hub[T]) Publish(key string, v T, also ...string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed != nil {
		return 0
	}
	return h.publishLocked(key, v, also)
}

// PublishFunc is [Hub.Publish] for values that contain their own number: value is
// called with the number and returns the value. It runs under the hub's lock and so
// must not use the hub.
func (h *Hub[T]) PublishFunc(key string, value func(seq uint64) T, also ...string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed != nil {
		return 0
	}
	return h.publishLocked(key, value(h.stats.Published+1), also)
}

func (h *Hub[T]) publishLocked(key string, v T, also []string) uint64 {
	h.stats.Published++
	item := Item[T]{Seq: h.stats.Published, Key: key, Value: v}
	copy(item.Also[:], also)
	h.rememberLocked(&item)
	h.deliverLocked(h.all, &item)
	if len(h.keyed) == 0 {
		return item.Seq
	}
	keys := [1 + maxAlso]string{key, item.Also[0], item.Also[1]}
	for i, key := range keys {
		if key != "" && !slices.Contains(keys[:i], key) {
			h.deliverLocked(h.keyed[key], &item)
		}
	}
	return item.Seq
}

// rememberLocked drops old items to make room, by number and by size, and remembers
// the item unless it alone exceeds the limit.
func (h *Hub[T]) rememberLocked(item *Item[T]) {
	size := h.sizeOf(item.Value)
	for h.ring.n > 0 && (h.ring.n == len(h.ring.slots) || h.ring.bytes+size > h.options.ReplayBytes) {
		h.ring.dropOldest(h.sizeOf(h.ring.oldest().Value))
	}
	if h.ring.n < len(h.ring.slots) && size <= h.options.ReplayBytes {
		h.ring.add(item, size)
	}
}

// deliverLocked appends an item to a subscription and those linked to it.
func (h *Hub[T]) deliverLocked(s *Subscription[T], item *Item[T]) {
	for s != nil {
		next := s.next // s may be unlinked
		if !s.push(item) {
			h.slowLocked(s)
		}
		s = next
	}
}

// slowLocked removes a subscription that has ended with [ErrSlow].
func (h *Hub[T]) slowLocked(s *Subscription[T]) {
	if !s.linked {
		return
	}
	h.unlinkLocked(s)
	h.stats.Slow++
	if h.options.Slow != nil {
		h.options.Slow()
	}
}

// Query selects items.
type Query struct {
	// Key selects the items of one key, whether or not it is their only key; empty =
	// all.
	Key string
	// Replay asks to begin with the items after the sequence number After, as far as
	// the hub remembers them. If it has forgotten some, or was created again since
	// and hasn't reached After, the first Next returns [ErrGap]. They are read in
	// pieces: if the hub has forgotten a piece when the reader gets to it, the
	// subscription is closed with [ErrSlow].
	Replay bool
	After  uint64
}

// Subscribe returns a subscription to everything published from now on, preceded by
// what query asks for from the past, with nothing missing or repeated in between. It
// must be closed. If the hub is closed, the subscription has already ended.
func (h *Hub[T]) Subscribe(query Query) *Subscription[T] {
	s := &Subscription[T]{hub: h, key: query.Key, due: 1}
	h.mu.Lock()
	defer h.mu.Unlock()
	if query.Replay {
		h.replayLocked(s, query.After)
	}
	if h.closed != nil {
		s.end(h.closed)
		return s
	}
	h.linkLocked(s)
	return s
}

// replayLocked lets a new subscription begin with what the hub remembers, and takes
// the first piece of it. The subscription must not be shared yet.
func (h *Hub[T]) replayLocked(s *Subscription[T], after uint64) {
	last := h.stats.Published
	first := last - uint64(h.ring.n) + 1 // the oldest remembered item
	switch {
	case after > last:
		// A number from an earlier hub: all items of this one are new.
		s.gap = &GapError{After: after, Next: first}
		after = 0
	case after+1 < first:
		s.gap = &GapError{After: after, Next: first}
	}
	s.due, s.until = max(after+1, first), last
	if s.wantsLocked() {
		s.fetchLocked()
	}
}

func (h *Hub[T]) linkLocked(s *Subscription[T]) {
	if s.key == "" {
		s.next, h.all = h.all, s
	} else {
		s.next, h.keyed[s.key] = h.keyed[s.key], s
	}
	if s.next != nil {
		s.next.prev = s
	}
	s.linked = true
	h.stats.Subscriptions++
}

func (h *Hub[T]) unlinkLocked(s *Subscription[T]) {
	if !s.linked {
		return
	}
	s.linked = false
	h.stats.Subscriptions--
	if s.next != nil {
		s.next.prev = s.prev
	}
	switch {
	case s.prev != nil:
		s.prev.next = s.next
	case s.key == "":
		h.all = s.next
	case s.next == nil:
		delete(h.keyed, s.key)
	default:
		h.keyed[s.key] = s.next
	}
	s.prev, s.next = nil, nil
}

// Close ends all subscriptions with a reason, after their remaining items; nil is
// [ErrClosed]. Later calls do nothing.
func (h *Hub[T]) Close(reason error) {
	if reason == nil {
		reason = ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed != nil {
		return
	}
	h.closed = reason
	h.endLocked(h.all)
	for _, s := range h.keyed {
		h.endLocked(s)
	}
}

func (h *Hub[T]) endLocked(s *Subscription[T]) {
	for s != nil {
		next := s.next
		s.end(h.closed)
		h.unlinkLocked(s)
		s = next
	}
}

// Stats returns the current numbers.
func (h *Hub[T]) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stats
}
