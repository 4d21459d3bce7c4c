// Package order holds the tasks that wait for one worker, and decides which of
// them runs next. It is a plain structure, without lock, clock and store: its
// owner sets the time and keeps it behind a lock.
//
//	Push ─► delayed ─(Advance)─► levels[0..4] or groups ─► Next ─► Take ─► Leave
//
// Where to look:
//
//	what runs next      next.go; turns.go (groups take turns), limits.go (how many
//	                    tasks of a group may run)
//	how it is kept      entry.go, level.go (fifo.go, heap.go), groups.go, ring.go,
//	                    deadlines.go, aside.go; remove.go (removal is lazy)
//	what is shown       count.go, view.go (the state as it was), ascend.go (in order)
package order

import (
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Order holds the tasks that wait for one worker. One goroutine uses it at a time.
type Order struct {
	aging  time.Duration      // raises a waiting task by one priority each time it passes
	perKey int                // tasks of one concurrency key that may run at once; 0 = no limit
	left   func(record.Group) // called when a group has lost its last task

	// now divides the entries: those that are ready by then are in levels or in
	// groups, later ones in delayed.
	now     record.Millis
	levels  [jobhost.Levels]level
	delayed entryHeap
	// groups hold the ready tasks that have a group; nil = there are none.
	groups *groups
	// laterGroups are the groups of delayed entries that have one.
	laterGroups map[entryID]record.Group
	deadlines   deadlines
	// aside are ready tasks that the owner has set aside: they don't run for now.
	aside map[record.Key]Waiting
	// readyAt has the times of entries that are ready at another time than the
	// store has.
	readyAt map[record.Key]record.Millis
	// gone has the entries that were removed. They are skipped when they come up,
	// since finding one in the middle would be a search.
	gone map[entryID]struct{}
	// The numbers of entries that are not gone, by level: ready ones, and later
	// ones that wait for their first attempt or for another one.
	ready, scheduled, retrying [jobhost.Levels]int
}

// entryID names an entry: a task under one of its tokens.
type entryID struct {
	key   record.Key
	token int32
}

// New returns an empty order. aging raises a waiting task by one priority each
// time it passes; negative = never. left is called when a group has lost its
// last task, waiting or running; nil = no call.
func New(aging time.Duration, left func(record.Group)) Order {
	if left == nil {
		left = func(record.Group) {}
	}
	return Order{aging: aging, left: left, readyAt: map[record.Key]record.Millis{}, gone: map[entryID]struct{}{}}
}

// Now is the latest time that Advance was called with.
func (o *Order) Now() record.Millis { return o.now }

// Push adds a task that waits.
func (o *Order) Push(e Entry, x Traits) {
	if x.Deadline != 0 {
		o.deadlines.add(e, x)
	}
	if e.ReadyAt <= o.now {
		o.pushReady(e, x.Group)
		return
	}
	o.delayed.push(e)
	*o.later(e)++
	if x.Group != 0 {
		if o.laterGroups == nil {
			o.laterGroups = map[entryID]record.Group{}
		}
		o.laterGroups[entryID{e.Key, e.Token}] = x.Group
	}
}

// PutBack adds a task that may be ready at another time than the store has.
func (o *Order) PutBack(e Entry, x Traits) {
	o.readyAt[e.Key] = e.ReadyAt
	o.Push(e, x)
}

// ReadyAt is when a task that was put back is ready; false = it was not put back.
func (o *Order) ReadyAt(key record.Key) (at record.Millis, ok bool) {
	at, ok = o.readyAt[key]
	return at, ok
}

func (o *Order) pushReady(e Entry, id record.Group) {
	if id != 0 {
		o.pushGroup(e, id)
		return
	}
	o.levels[e.Level].push(e)
	o.ready[e.Level]++
	if o.groups != nil {
		o.enlist(0, int(e.Level))
	}
}

// later is the counter of a delayed entry.
func (o *Order) later(e Entry) *int {
	if e.Tried {
		return &o.retrying[e.Level]
	}
	return &o.scheduled[e.Level]
}

// Advance sets the time and makes the tasks ready that are due.
func (o *Order) Advance(now record.Millis) {
	o.now = max(o.now, now)
	for o.delayed.n > 0 && o.delayed.peek().ReadyAt <= o.now {
		e := o.delayed.pop()
		id := o.dropLater(e)
		if o.dropGone(e) {
			continue
		}
		*o.later(e)--
		o.pushReady(e, id)
	}
}

// dropLater returns the group of an entry that was delayed, and forgets it.
func (o *Order) dropLater(e Entry) record.Group {
	if len(o.laterGroups) == 0 {
		return 0
	}
	entry := entryID{e.Key, e.Token}
	id := o.laterGroups[entry]
	delete(o.laterGroups, entry)
	if len(o.laterGroups) == 0 {
		o.laterGroups = nil // a map never gets smaller
	}
	return id
}

// Due is when the next task becomes ready or passes its deadline; false = none will.
func (o *Order) Due() (at record.Millis, ok bool) {
	at = never
	if o.delayed.n > 0 {
		at = o.delayed.peek().ReadyAt
	}
	if o.deadlines.next.n > 0 {
		at = min(at, o.deadlines.next.peek().ReadyAt)
	}
	return at, at != never
}

// Expire takes out a task whose deadline has passed; false = there is none.
func (o *Order) Expire() (w Waiting, ok bool) {
	if o.deadlines.next.n == 0 {
		return Waiting{}, false
	}
	return o.expire()
}

func (o *Order) expire() (w Waiting, ok bool) {
	if w, ok = o.deadlines.due(o.now); ok {
		o.Remove(w.Entry, w.Group)
	}
	return w, ok
}

// Restore puts back a task that Expire took out, with another deadline.
func (o *Order) Restore(w Waiting) {
	entry := entryID{w.Key, w.Token}
	if _, there := o.gone[entry]; there { // so is the entry
		delete(o.gone, entry)
		o.uncount(w.Entry, w.Group, -1)
	} else {
		o.Push(w.Entry, Traits{Group: w.Group})
	}
	o.deadlines.add(w.Entry, w.Traits)
}
