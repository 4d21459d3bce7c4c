package hub

// ring remembers the last items. Its slots are reused and hold nothing that
// was dropped, so that it can be freed.
type ring[T any] struct {
	slots []Item[T]
	first int // where the oldest is
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

// add keeps an item; there must be room.
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

// since returns the items of a key (empty = all) with a higher number than
// after, in order.
func (r *ring[T]) since(after uint64, key string) []Item[T] {
	var found []Item[T]
	for i := range r.n {
		item := r.at(i)
		if item.Seq > after && item.has(key) {
			found = append(found, *item)
		}
	}
	return found
}
