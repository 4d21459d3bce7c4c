package queue

import (
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Stats are the numbers of one worker's open tasks, by level of priority.
type Stats struct {
	Ready, Held, Scheduled, Retrying, Running [jobhost.Levels]int
	// Idle is how many slots wait for a task.
	Idle int
	// OldestReady is how long the oldest ready or held task has waited; 0 = none waits.
	OldestReady time.Duration
}

// Stats returns the numbers of a worker, which must be one of the queue's.
func (q *Queue) Stats(worker string) Stats { return q.lanes.of(worker).stats() }

func (l *lane) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advanceLocked()
	s := Stats{Ready: l.ready, Scheduled: l.scheduled, Retrying: l.retrying, Idle: len(l.idle)}
	l.heldLocked(&s)
	for _, lease := range l.running {
		s.Running[lease.entry.level]++
	}
	s.OldestReady = time.Duration(l.horizon-l.oldestLocked()) * time.Millisecond
	return s
}

// heldLocked moves what is held from the ready tasks, and adds what is put aside.
func (l *lane) heldLocked(s *Stats) {
	defer func() {
		for _, a := range l.aside {
			s.Held[a.level]++
		}
	}()
	if l.holdLocked() != notHeld {
		s.Ready, s.Held = s.Held, s.Ready
		return
	}
	if l.groups == nil {
		return
	}
	for r := range l.groups.allFull() {
		for level, n := range l.groups.at(r).live {
			s.Ready[level] -= int(n)
			s.Held[level] += int(n)
		}
	}
}

// oldestLocked returns since when the oldest task is ready, or now. Of many
// groups it looks at those whose turn is next, which wait longest.
func (l *lane) oldestLocked() record.Millis {
	const most = 16_384
	oldest := l.horizon
	for _, a := range l.aside {
		oldest = min(oldest, a.readyAt)
	}
	for level := range l.levels {
		plain := l.ready[level]
		if l.groups != nil {
			plain -= l.groups.ready[level]
		}
		if plain > 0 {
			oldest = min(oldest, l.headLocked(level).readyAt)
		}
	}
	if l.groups == nil {
		return oldest
	}
	for level := range l.levels {
		ring := &l.groups.rings[level]
		for i := range min(ring.n, most) {
			if r := ring.at(i); r != 0 && l.groups.at(r).live[level] > 0 {
				oldest = min(oldest, l.groupHeadLocked(r, level).readyAt)
			}
		}
		for r := range l.groups.allFull() {
			if l.groups.at(r).live[level] > 0 {
				oldest = min(oldest, l.groupHeadLocked(r, level).readyAt)
			}
		}
	}
	return oldest
}

func (s Stats) readyTotal() int {
	n := 0
	for _, r := range s.Ready {
		n += r
	}
	return n
}

// Counts adds the numbers up by state.
func (s Stats) Counts() jobhost.Counts {
	var c jobhost.Counts
	for level := range s.Ready {
		c[jobhost.Ready] += int64(s.Ready[level])
		c[jobhost.Held] += int64(s.Held[level])
		c[jobhost.Scheduled] += int64(s.Scheduled[level])
		c[jobhost.Retrying] += int64(s.Retrying[level])
		c[jobhost.Running] += int64(s.Running[level])
	}
	return c
}
