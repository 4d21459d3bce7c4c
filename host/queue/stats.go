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
	c := l.order.Count(l.holdLocked() != notHeld)
	s := Stats{Ready: c.Ready, Held: c.Held, Scheduled: c.Scheduled, Retrying: c.Retrying, Idle: len(l.idle)}
	for _, lease := range l.running {
		s.Running[lease.entry.Level]++
	}
	s.OldestReady = time.Duration(l.order.Now()-l.order.Oldest()) * time.Millisecond
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
