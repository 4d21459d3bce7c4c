package hub

// ring remembers the last items. Its slots are reused; dropped items are cleared so that they can
// be freed.
type ring[T any] struct {
	slots []Item[T]
	first int // index of the oldest
	n     int // slots in use
	bytes int // sum of the sizes
}

// at returns the i-th oldest item.
func (r *ring[T]) at(i int) *Item[T] {
	if i += r.first; i >= len(r.slots) {
		i -= len(r.slots)
	}
	return &r.slots[i]
}

func (r *ring[T]) oldest() *Item[T] { return r.at(0) }

// add stores an item; there must be a free slot.
func (r *ring[T]) add(item *Item[T], size int) {
	*r.at(r.n) = *item
	r.n++
	r.bytes += size
}

func (r *ring[T]) dropOldest(size int) {
	*r.oldest() = Item[T]{}
	if r.first++; r.first == len(r.slots) {
		r.first = 0
	}
	r.n--
	r.bytes -= size
}

// pieceItems is how much of the past a subscription takes at a time: hundreds of readers may ask
// for all of it and read nothing.
func (h *Hub[T]) pieceItems() int { return max(h.options.Buffer/4, 1) }

// pieceBytes is how large such a piece is, unless its only item is larger: it outlives the hub's own
// memory of it, while its reader is slow.
func (h *Hub[T]) pieceBytes() int { return h.options.BufferBytes / 4 }

// pieceLocked returns the first items of a key (empty = all) between the numbers next and last, in
// order, and the number to continue from. The ring must have item next.
func (h *Hub[T]) pieceLocked(next, last uint64, key string) (found []Item[T], due uint64) {
	r, bytes := &h.ring, 0
	for i := int(next - r.oldest().Seq); next <= last; i, next = i+1, next+1 {
		item := r.at(i)
		if !item.has(key) {
			continue
		}
		bytes += h.sizeOf(item.Value)
		if len(found) == h.pieceItems() || len(found) > 0 && bytes > h.pieceBytes() {
			break
		}
		found = append(found, *item)
	}
	return found, next
}

// fetch takes the next piece of the past out of the hub's memory, if the previous one has been
// read. If the hub has forgotten it, the reader was too slow.
func (s *Subscription[T]) fetch() {
	if s.mu.Lock(); !s.wantsLocked() {
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wantsLocked() && !s.fetchLocked() {
		s.dropLocked()
		s.endLocked(ErrSlow)
		h.slowLocked(s)
	}
}

// wantsLocked reports whether a piece of the past is to be fetched.
func (s *Subscription[T]) wantsLocked() bool { return len(s.past) == 0 && s.due <= s.until }

// fetchLocked is fetch under the locks of the hub and of s. It reports whether the hub still has
// what s wants.
func (s *Subscription[T]) fetchLocked() bool {
	h := s.hub
	if s.due < h.stats.Published-uint64(h.ring.n)+1 {
		return false
	}
	s.past, s.due = h.pieceLocked(s.due, s.until, s.key)
	return true
}
