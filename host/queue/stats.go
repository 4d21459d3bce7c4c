package queue

import (
	"time"

	"github.com/jobhost/jobhost"
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
	if l.holdLocked() != notHeld {
		s.Ready, s.Held = s.Held, s.Ready
	}
	for _, lease := range l.running {
		s.Running[lease.entry.level]++
	}
	oldest := l.horizon
	for level := range l.levels {
		if l.ready[level] > 0 {
			oldest = min(oldest, l.headLocked(level).readyAt)
		}
	}
	s.OldestReady = time.Duration(l.horizon-oldest) * time.Millisecond
	return s
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
