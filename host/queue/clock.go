package queue

import "time"

// clock tells the time of day as it was when the queue opened, plus what has
// passed since: a jump of the system's clock changes no task's order or time.
type clock struct{ base time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) now() time.Time { return c.base.Add(time.Since(c.base)) }

// Now is the time on the queue's clock, on which all that it tells is dated.
func (q *Queue) Now() time.Time { return q.clock.now() }
