package order

import (
	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Count are the numbers of tasks that wait, by level of priority. Held are those
// that are ready but must not run for now.
type Count struct {
	Ready, Held, Scheduled, Retrying [jobhost.Levels]int
}

// Len is the number of tasks that wait.
func (o *Order) Len() int {
	n := len(o.aside)
	for level := range o.ready {
		n += o.ready[level] + o.scheduled[level] + o.retrying[level]
	}
	return n
}

// AnyReady reports whether a task is ready; all of them may be held by their groups.
func (o *Order) AnyReady() bool {
	for _, n := range o.ready {
		if n > 0 {
			return true
		}
	}
	return false
}

// Count counts the tasks that wait. held says that none of them may run at all.
func (o *Order) Count(held bool) Count {
	c := Count{Ready: o.ready, Scheduled: o.scheduled, Retrying: o.retrying}
	switch {
	case held:
		c.Ready, c.Held = c.Held, c.Ready
	case o.groups != nil:
		for r := range o.groups.allFull() {
			for level, n := range o.groups.at(r).live {
				c.Ready[level] -= int(n)
				c.Held[level] += int(n)
			}
		}
	}
	for _, w := range o.aside {
		c.Held[w.Level]++
	}
	return c
}

// Oldest is the time since which the oldest task is ready, held or not; without
// a ready task it is Now. Of many groups it looks only at those that are next.
func (o *Order) Oldest() record.Millis {
	oldest := o.now
	for _, w := range o.aside {
		oldest = min(oldest, w.ReadyAt)
	}
	for level := range o.levels {
		plain := o.ready[level]
		if o.groups != nil {
			plain -= o.groups.ready[level]
		}
		if plain > 0 {
			oldest = min(oldest, o.head(level).ReadyAt)
		}
	}
	if o.groups == nil {
		return oldest
	}
	return min(oldest, o.oldestOfGroups())
}

func (o *Order) oldestOfGroups() record.Millis {
	const most = 16_384
	oldest := o.now
	for level := range o.levels {
		ring := &o.groups.rings[level]
		for i := range min(ring.n, most) {
			if r := ring.at(i); r != 0 && o.groups.at(r).live[level] > 0 {
				oldest = min(oldest, o.groupHead(r, level).ReadyAt)
			}
		}
		for r := range o.groups.allFull() {
			if o.groups.at(r).live[level] > 0 {
				oldest = min(oldest, o.groupHead(r, level).ReadyAt)
			}
		}
	}
	return oldest
}

// Size says how much an order holds, for tests of what it costs in memory.
type Size struct {
	Entries   int // removed ones that are still in their places included
	Removed   int // of these
	Deadlines int // forgotten ones that are still in their places included
	Busy      int // groups with tasks that run
	Other     int // entries of maps: groups, deadlines, times
}

// Size counts what the order holds.
func (o *Order) Size() Size {
	s := Size{
		Entries: o.delayed.n, Removed: len(o.gone), Deadlines: o.deadlines.next.n,
		Other: len(o.readyAt) + len(o.laterGroups) + len(o.deadlines.waits) + len(o.aside),
	}
	for level := range o.levels {
		s.Entries += o.levels[level].len()
	}
	if o.groups != nil {
		s.Busy = len(o.groups.busy)
		for range o.groups.all() {
			s.Entries++
		}
	}
	return s
}
