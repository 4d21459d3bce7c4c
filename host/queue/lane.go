package queue

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/rate"
)

// lane holds the open tasks of one worker that this process has claimed:
// those that wait, in order, and those that run. It is a window over the
// store and never the truth.
//
//	push ─► delayed ─(its time)─► levels[0..4] ─► choose ─► running ─► settled
type lane struct {
	q    *Queue
	name string // of the worker
	// worker says how the tasks are treated. It changes when the worker is
	// loaded anew, and stays when it is removed, for attempts that still run.
	worker atomic.Pointer[Worker]
	// parked says that no such worker is loaded: nothing is admitted, and what
	// waits is held. It is changed under mu.
	parked atomic.Bool
	// spills says that there were results for a payload store that is away.
	spills atomic.Bool

	mu   sync.Mutex // protects everything below
	mode jobhost.WorkerMode
	// disabled is why the worker can't run anything, whatever its mode; empty = it can.
	disabled string
	levels   [jobhost.Levels]level
	delayed  entryHeap
	// horizon parts the two: entries ready at or before it are in levels,
	// later ones in delayed.
	horizon record.Millis
	timer   *time.Timer   // fires when the first of delayed is due
	timerAt record.Millis // what the timer is set to
	// moved holds when the entries are ready that wait here for another time
	// than the store says: those that were put back.
	moved map[record.Key]record.Millis
	// gone marks entries whose task was cancelled; they are skipped when
	// their turn comes, since taking one out of the middle would be a search.
	gone map[goneEntry]struct{}
	// The numbers of entries that are not gone, by level: ready ones, and
	// later ones that wait for their first and for another attempt.
	ready, scheduled, retrying [jobhost.Levels]int
	pending                    int // tasks of submits under way; they have their place already

	granted bool                  // a place in the gate that a task left to this lane,
	grant   int64                 // with so much memory
	running map[record.Key]*Lease // current leases; those of cancelled attempts are not here
	idle    []*Slot               // slots that wait for a task; the last one waits the shortest

	bodies bodyCache

	// groups hold the ready tasks with a concurrency key; nil = there are none.
	groups    *groups
	deadlines deadlines
	// expiring are the tasks past their deadline whose end is not durable yet;
	// those that are on their way have deadline 0.
	expiring map[record.Key]waiting
	ends     bool // a goroutine sees to them
	// laterGroups are the groups of delayed entries that have one.
	laterGroups map[goneEntry]record.Group
	rate        rate.Rate
	breaker     *sharedBreaker // nil = none
	// aside are the tasks that are ready and wait for a payload store that is away.
	aside map[record.Key]asideTask
	// misses counts by task how often it has met a fault of a payload store.
	misses map[record.Key]int
	wake   *time.Timer // ends what holds the lane until wakeAt
	wakeAt time.Time
}

type goneEntry struct {
	key   record.Key
	token int32
}

func newLane(q *Queue, name string) *lane {
	l := &lane{
		q:       q,
		name:    name,
		mode:    jobhost.WorkerRunning,
		moved:   map[record.Key]record.Millis{},
		gone:    map[goneEntry]struct{}{},
		running: map[record.Key]*Lease{},
		bodies:  newBodyCache(q),
	}
	l.parked.Store(true)
	return l
}

// waitingLocked returns the number of tasks that wait or are about to.
func (l *lane) waitingLocked() int {
	n := l.pending + len(l.aside)
	for level := range l.ready {
		n += l.ready[level] + l.scheduled[level] + l.retrying[level]
	}
	return n
}

// pushLocked adds a task that waits.
func (l *lane) pushLocked(e entry, x traits) {
	if x.deadline != 0 {
		l.deadlines.add(e, x)
	}
	id := x.group
	if e.readyAt <= l.horizon {
		l.pushReadyLocked(e, id)
		return
	}
	l.delayed.push(e)
	*l.laterLocked(e)++
	if id != 0 {
		if l.laterGroups == nil {
			l.laterGroups = map[goneEntry]record.Group{}
		}
		l.laterGroups[goneEntry{e.key, e.token}] = id
	}
}

func (l *lane) pushReadyLocked(e entry, id record.Group) {
	if id != 0 {
		l.pushGroupLocked(e, id)
		return
	}
	l.levels[e.level].push(e)
	l.ready[e.level]++
	if l.groups != nil {
		l.enlistLocked(0, int(e.level))
	}
}

// dropLaterLocked returns the group of an entry that was delayed, and forgets it.
func (l *lane) dropLaterLocked(e entry) record.Group {
	if len(l.laterGroups) == 0 {
		return 0
	}
	mark := goneEntry{e.key, e.token}
	id := l.laterGroups[mark]
	delete(l.laterGroups, mark)
	if len(l.laterGroups) == 0 {
		l.laterGroups = nil // a map never gets smaller
	}
	return id
}

// laterLocked is the counter of a delayed entry.
func (l *lane) laterLocked(e entry) *int {
	if e.tried {
		return &l.retrying[e.level]
	}
	return &l.scheduled[e.level]
}

// advanceLocked moves what is due from delayed to its level and sets the
// timer for what is next.
func (l *lane) advanceLocked() {
	l.horizon = max(l.horizon, record.MillisOf(l.q.clock.now()))
	for l.delayed.n > 0 && l.delayed.peek().readyAt <= l.horizon {
		e := l.delayed.pop()
		id := l.dropLaterLocked(e)
		if l.dropGoneLocked(e) {
			continue
		}
		*l.laterLocked(e)--
		l.pushReadyLocked(e, id)
	}
	next := record.Millis(math.MaxInt64)
	if l.delayed.n > 0 {
		next = l.delayed.peek().readyAt
	}
	if l.deadlines.next.n > 0 {
		l.expireLocked()
		if l.deadlines.next.n > 0 {
			next = min(next, l.deadlines.next.peek().readyAt)
		}
	}
	if next == math.MaxInt64 || next == l.timerAt || l.q.closed.Load() {
		return
	}
	l.timerAt = next
	wait := time.Duration(l.timerAt-l.horizon) * time.Millisecond
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.due)
	} else {
		l.timer.Reset(wait)
	}
}

// due runs when the first of the delayed entries is due.
func (l *lane) due() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timerAt = 0
	l.pumpLocked()
}

// dropGoneLocked reports whether the entry's task was cancelled, and forgets the mark.
func (l *lane) dropGoneLocked(e entry) bool {
	if len(l.gone) == 0 {
		return false
	}
	mark := goneEntry{e.key, e.token}
	_, gone := l.gone[mark]
	delete(l.gone, mark)
	return gone
}

// removeLocked takes out a waiting task that was cancelled.
func (l *lane) removeLocked(e entry, id record.Group) {
	delete(l.misses, e.key)
	if _, aside := l.aside[e.key]; aside {
		delete(l.aside, e.key)
		l.deadlines.forget(e.key)
		return
	}
	if at, moved := l.moved[e.key]; moved {
		e.readyAt = at
		delete(l.moved, e.key)
	}
	l.gone[goneEntry{e.key, e.token}] = struct{}{}
	l.deadlines.forget(e.key)
	if l.groups != nil {
		l.groups.stale[e.level] = true
	}
	l.uncountLocked(e, id, 1)
	if len(l.gone) > mostGone && len(l.gone) > l.waitingLocked() {
		l.sweepLocked()
	}
}

// uncountLocked takes so many off the numbers that count an entry.
func (l *lane) uncountLocked(e entry, id record.Group, n int) {
	switch {
	case e.readyAt > l.horizon:
		*l.laterLocked(e) -= n
	case id != 0:
		l.ready[e.level] -= n
		l.uncountGroupLocked(e, id, n)
	default:
		l.ready[e.level] -= n
	}
}

// mostGone is how many marks are kept before the entries are looked through.
const mostGone = 1024

// sweepLocked takes all marked entries out, so that tasks that are submitted
// for next year and cancelled don't pile up.
func (l *lane) sweepLocked() {
	for i := range l.levels {
		var kept level
		for e := range l.levels[i].all() {
			if !l.dropGoneLocked(e) {
				kept.push(e)
			}
		}
		l.levels[i] = kept
	}
	l.sweepGroupsLocked()
	var kept entryHeap
	for e := range l.delayed.all() {
		if !l.dropGoneLocked(e) {
			kept.push(e)
		} else {
			l.dropLaterLocked(e)
		}
	}
	l.delayed = kept
}

// headLocked returns the oldest entry of a level without a group, of which
// there must be one that is not gone.
func (l *lane) headLocked(level int) entry {
	v := &l.levels[level]
	for l.dropGoneLocked(v.peek()) {
		v.pop()
	}
	return v.peek()
}

// soonLocked reports whether a task that is ready at the time given is worth
// its place in the cache of bodies.
func (l *lane) soonLocked(readyAt record.Millis) bool {
	return readyAt <= l.horizon+record.Millis(soon/time.Millisecond)
}

// soon is short against the time in which a full cache is used up.
const soon = time.Second

// chooseLocked takes the task that runs next: the one with the best effective
// priority, of equals the oldest. Within a level the oldest entry has waited
// longest, so looking at the heads of the levels is enough. There must be a
// ready task, and no groups.
func (l *lane) chooseLocked() entry {
	best := -1
	var bestAt jobhost.Priority
	for level := range l.levels {
		if l.ready[level] == 0 {
			continue
		}
		head := l.headLocked(level)
		effective := l.effectiveLocked(level, head.readyAt)
		if best < 0 || effective < bestAt ||
			effective == bestAt && older(head, l.levels[best].peek()) {
			best, bestAt = level, effective
		}
	}
	l.ready[best]--
	return l.levels[best].pop()
}

// pumpLocked hands tasks to idle slots while there are both.
func (l *lane) pumpLocked() {
	l.advanceLocked()
	for len(l.idle) > 0 && l.anyReadyLocked() && !l.q.closed.Load() {
		if l.holdLocked() != notHeld {
			l.wakeLocked()
			return
		}
		var next turn
		if l.groups != nil {
			var some bool
			if next, some = l.nextTurnLocked(); !some {
				return // the tasks of a key that has too many wait for their end
			}
			if l.jobHoldsLocked(next.group) {
				continue
			}
		}
		memory, ok := l.q.gate.enter(l)
		if !ok {
			return
		}
		lease := &Lease{lane: l, TakenAt: l.q.clock.now(), memory: memory}
		if !l.passLocked(lease, next.group) {
			time.AfterFunc(0, func() { l.q.gate.leave(memory) })
			continue // the look at what holds tasks finds it now
		}
		if l.groups != nil {
			lease.entry, lease.group = next.entry, l.takeTurnLocked(next)
		} else {
			lease.entry = l.chooseLocked()
		}
		l.handLocked(lease)
	}
}

// handLocked gives a lease to a slot.
func (l *lane) handLocked(lease *Lease) {
	if lease.refusedBy == "" {
		l.rate.Take(lease.TakenAt)
	}
	delete(l.moved, lease.entry.key)
	lease.unread = traits{lease.group, l.deadlines.forget(lease.entry.key)}
	l.running[lease.entry.key] = lease
	slot := l.idle[len(l.idle)-1]
	l.idle = l.idle[:len(l.idle)-1]
	slot.handed <- lease // has room: a slot waits for one lease at a time
}

func (l *lane) anyReadyLocked() bool {
	for _, n := range l.ready {
		if n > 0 {
			return true
		}
	}
	return false
}

// stop ends the lane's timer; nothing is handed out any more.
func (l *lane) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, timer := range []*time.Timer{l.timer, l.wake} {
		if timer != nil {
			timer.Stop()
		}
	}
}
