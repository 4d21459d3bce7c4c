package op

// Waiting is the number of parties in the channel's queues, stale ones included.
func (c *Chan[T]) Waiting() (senders, receivers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.senders.count(), c.receivers.count()
}

// Stuck reports whether a sender and a receiver of different performings, both
// undecided, wait beside each other.
func (c *Chan[T]) Stuck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := c.senders.head; s != nil; s = s.next {
		for r := c.receivers.head; r != nil; r = r.next {
			if s.s != r.s && !s.s.decided() && !r.s.decided() {
				return true
			}
		}
	}
	return false
}

func (q *parties[T]) count() int {
	n := 0
	for p := q.head; p != nil; p = p.next {
		n++
	}
	return n
}
