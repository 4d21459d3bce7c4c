package queue

// Resident is how many bytes the bodies in memory are counted as.
func (q *Queue) Resident() int64 { return q.resident.Load() }

// Entries is how many entries a worker's lane holds, gone ones included.
func (q *Queue) Entries(worker string) int {
	l := q.lanes[worker]
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.delayed)
	for level := range l.levels {
		n += l.levels[level].n
	}
	return n
}
