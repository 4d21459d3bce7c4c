package queue

import "time"

// lookForLease is how often a queue looks whether its store's lease was renewed.
const lookForLease = 100 * time.Millisecond

// storeHolds says why nothing may begin, whatever the worker: the store has failed, or its lease was not renewed for a
// while and another host may lead soon.
func (q *Queue) storeHolds() hold {
	select {
	case <-q.failed:
		return holdFailed
	default:
	}
	if q.leased != nil && q.leased.Holding() {
		return holdLease
	}
	return notHeld
}

// unhand makes a task wait again that nothing was begun of since its slot has it.
func (s *Slot) unhand(lease *Lease) {
	l := s.lane
	l.mu.Lock()
	l.rate.GiveBack()
	l.mu.Unlock()
	l.putBack(lease)
}
