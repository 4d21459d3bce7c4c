package op

// side is one arm of one session when it meets another. The zero side belongs to
// a performing that is not waiting and has no registrations: no other goroutine
// can commit one of its arms, so it commits simply by continuing.
type side struct {
	s   *session
	arm int
}

// verdict is the outcome of trying to commit.
type verdict uint8

const (
	agreed verdict = iota // committed
	notYet                // not possible now
	gone                  // the session was already decided
)

// commit commits the side alone.
func (me side) commit() verdict {
	if me.s == nil || me.s.commit(me.arm) {
		return agreed
	}
	return gone
}

// party is a blocked send or receive.
type party[T any] struct {
	side
	c     *Chan[T]
	value T // to send, or received
	err   error

	queue      *parties[T] // the queue it is in; nil = none; under c.mu
	next, prev *party[T]   // under c.mu
}

// withdraw takes the party out of its queue.
func (p *party[T]) withdraw() {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if p.queue != nil {
		p.queue.remove(p)
	}
}

// parties is the queue of waiting senders, or of waiting receivers. The
// channel's mutex protects it.
type parties[T any] struct {
	head, tail *party[T]
}

func (q *parties[T]) push(p *party[T]) {
	p.queue, p.prev = q, q.tail
	if q.tail == nil {
		q.head = p
	} else {
		q.tail.next = p
	}
	q.tail = p
}

func (q *parties[T]) remove(p *party[T]) {
	if p.prev == nil {
		q.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		q.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.queue, p.next, p.prev = nil, nil, nil
}

// meet commits me and the first party that can commit, together, and removes the
// party. The caller must then exchange the value and wake the party. Parties
// that were decided elsewhere are removed on the way; other arms of me's own
// session are skipped and stay.
func (q *parties[T]) meet(me side) (*party[T], verdict) {
	for p := q.head; p != nil; {
		next := p.next
		switch {
		case me.s == nil:
			q.remove(p)
			if p.commit() == agreed {
				return p, agreed
			}
		case me.s != p.s:
			switch commitBoth(me.s, me.arm, p.s, p.arm) {
			case met:
				q.remove(p)
				return p, agreed
			case peerGone:
				q.remove(p)
			case selfGone:
				return nil, gone
			}
		}
		p = next
	}
	return nil, notYet
}

// dismiss ends the wait of all parties with err.
func (q *parties[T]) dismiss(err error) {
	for p := q.head; p != nil; p = q.head {
		q.remove(p)
		if p.commit() == agreed {
			p.err = err
			p.s.wakeUp()
		}
	}
}

// ring is a bounded queue of values.
type ring[T any] struct {
	slots   []T
	head, n int
}

func (r *ring[T]) full() bool { return r.n == len(r.slots) }

func (r *ring[T]) push(v T) {
	r.slots[(r.head+r.n)%len(r.slots)] = v
	r.n++
}

func (r *ring[T]) pop() T {
	var zero T
	v := r.slots[r.head]
	r.slots[r.head] = zero // the channel must not keep it alive
	r.head = (r.head + 1) % len(r.slots)
	r.n--
	return v
}
