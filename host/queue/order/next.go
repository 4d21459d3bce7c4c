package order

import (
	"math"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Choice is the task that runs next. It holds until the order changes.
type Choice struct {
	Group record.Group  // 0 = it has none
	since record.Millis // it is ready
	ref   ref           // of the group
	place int32         // of the group in the ring of its level
	level int8
}

// never is later than every time.
const never = record.Millis(math.MaxInt64)

// Next chooses the task that runs next: the one with the best effective priority,
// of equals the oldest, as far as its group lets it run. Groups of one priority
// take turns. False = none may run.
func (o *Order) Next() (Choice, bool) {
	if o.groups != nil {
		return o.nextOfGroups()
	}
	best := -1
	var bestAt jobhost.Priority
	// Within a level the oldest entry has waited longest, so looking at the
	// heads of the levels is enough.
	for level := range o.levels {
		if o.ready[level] == 0 {
			continue
		}
		head := o.head(level)
		effective := o.effective(level, head.ReadyAt)
		if best < 0 || effective < bestAt || effective == bestAt && older(head, o.levels[best].peek()) {
			best, bestAt = level, effective
		}
	}
	return Choice{level: int8(best)}, best >= 0
}

// Take removes the task that Next has chosen. If it has a group it counts as
// running until Leave.
func (o *Order) Take(c Choice) Waiting {
	o.ready[c.level]--
	var e Entry
	if o.groups == nil {
		e = o.levels[c.level].pop()
	} else {
		e = o.takeOfGroups(c)
	}
	delete(o.readyAt, e.Key)
	return Waiting{e, Traits{c.Group, o.deadlines.forget(e.Key)}}
}

// head returns the oldest entry of a level without a group, of which
// there must be one that is not gone.
func (o *Order) head(level int) Entry {
	v := &o.levels[level]
	for o.dropGone(v.peek()) {
		v.pop()
	}
	return v.peek()
}

// effective is the priority, with aging, of a task that is ready since a time.
func (o *Order) effective(level int, since record.Millis) jobhost.Priority {
	age := time.Duration(o.now-min(since, o.now)) * time.Millisecond
	return jobhost.PriorityAt(level).Effective(age, o.aging)
}

// nextOfGroups is Next for an order with groups: the level with the best
// effective priority, of equals that with the oldest task, says which of its
// groups is next.
func (o *Order) nextOfGroups() (Choice, bool) {
	best, priority, oldest := -1, jobhost.Priority(0), never
	for level := range o.levels {
		o.refresh(level)
		since := o.groups.oldest[level]
		if since == never {
			continue
		}
		effective := o.effective(level, since)
		if best < 0 || effective < priority || effective == priority && since < oldest {
			best, priority, oldest = level, effective, since
		}
	}
	if best < 0 {
		return Choice{}, false
	}
	return o.nextInRing(best, priority)
}

// nextInRing finds which group of a level is next: the first in the ring whose
// oldest task has the best effective priority of all, which is that of the
// oldest. Nearly always that is the first of all.
func (o *Order) nextInRing(level int, best jobhost.Priority) (Choice, bool) {
	ring := &o.groups.rings[level]
	for i := range ring.n {
		r := ring.at(i)
		if !o.gives(r, level) {
			continue
		}
		if head := o.groupHead(r, level); o.effective(level, head.ReadyAt) == best {
			return Choice{Group: o.groups.at(r).id, since: head.ReadyAt, ref: r, place: int32(i), level: int8(level)}, true
		}
	}
	return Choice{}, false
}

// takeOfGroups takes out a choice of an order with groups.
func (o *Order) takeOfGroups(c Choice) Entry {
	g, level := o.groups, int(c.level)
	g.stale[level] = g.stale[level] || c.since <= g.oldest[level]
	g.rings[level].rotate(int(c.place))
	g.at(g.rings[level].pop()).inRing &^= 1 << level
	if c.ref == 0 {
		e := o.levels[level].pop()
		o.enlist(0, level)
		return e
	}
	e := g.pop(c.ref, level)
	g.ready[level]--
	gr := g.at(c.ref)
	gr.live[level]--
	g.run(c.ref, 1)
	for other, n := range gr.live { // if the group is full now, its tasks of all levels must wait
		g.stale[other] = g.stale[other] || n > 0 && g.full(c.ref)
	}
	o.enlist(c.ref, level)
	return e
}

// Leave is called when a task of a group no longer runs.
func (o *Order) Leave(id record.Group) {
	g := o.groups
	r := g.refs[id]
	g.run(r, -1)
	o.enlistAll(r)
	g.drop(r)
	if len(g.refs) == 0 {
		o.groups = nil
	}
}
