package queue

// Resident is how many bytes the bodies in memory are counted as.
func (q *Queue) Resident() int64 { return q.resident.Load() }

// Entries is how many entries a worker's lane holds, gone ones included.
func (q *Queue) Entries(worker string) int {
	l := q.lanes.of(worker)
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.delayed.n
	for level := range l.levels {
		n += l.levels[level].len()
	}
	return n
}

// Live is how many entries a worker's lane holds that are not gone.
func (q *Queue) Live(worker string) int {
	n := q.Entries(worker)
	l := q.lanes.of(worker)
	l.mu.Lock()
	defer l.mu.Unlock()
	return n - len(l.gone)
}

// Remains is how much a worker's lane still knows of tasks, besides entries:
// leases, room that was reserved, times of those put back, reads under way.
func (q *Queue) Remains(worker string) int {
	l := q.lanes.of(worker)
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.running) + l.pending + len(l.moved) + len(l.bodies.loads) + len(l.bodies.held)
}

// GateFree is how many more tasks may run.
func (q *Queue) GateFree() int {
	q.gate.mu.Lock()
	defer q.gate.mu.Unlock()
	return q.gate.places
}
