package queue

import (
	"iter"
	"math"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// turn is the task that is next.
type turn struct {
	entry
	group ref
	place int // in the ring of its level
}

// never is later than every time.
const never = record.Millis(math.MaxInt64)

// pushGroupLocked adds a ready task that has a concurrency key.
func (l *lane) pushGroupLocked(e entry, id record.Group) {
	if l.groups == nil {
		l.groups = newGroups(l.perKey())
		for level := range l.levels {
			if l.ready[level] > 0 {
				l.enlistLocked(0, level)
			}
		}
	}
	r := l.groups.push(e, id)
	l.ready[e.level]++
	l.enlistLocked(r, int(e.level))
}

// perKey is how many tasks of one concurrency key may run; 0 = no limit.
func (l *lane) perKey() int {
	if w := l.worker.Load(); w != nil {
		return w.PerKey
	}
	return 0
}

// limitLocked changes how many tasks of each key may run.
func (l *lane) limitLocked(limit int) {
	if l.groups == nil || l.groups.limit == limit {
		return
	}
	l.groups.limit = limit
	l.groups.staleAll()
	for _, r := range l.groups.refs {
		l.enlistAllLocked(r)
	}
}

// givesLocked reports whether a group has a task of the level that may run.
func (l *lane) givesLocked(r ref, level int) bool {
	if r == 0 {
		return l.ready[level] > l.groups.ready[level]
	}
	return l.groups.at(r).live[level] > 0 && !l.groups.full(r)
}

// enlistLocked puts a group at the end of the ring, if it has something to give
// and is not there.
func (l *lane) enlistLocked(r ref, level int) {
	g := l.groups
	if !l.givesLocked(r, level) {
		return
	}
	g.oldest[level] = min(g.oldest[level], l.groupHeadLocked(r, level).readyAt)
	if gr := g.at(r); gr.inRing&(1<<level) == 0 {
		gr.inRing |= 1 << level
		g.rings[level].push(r)
	}
}

func (l *lane) enlistAllLocked(r ref) {
	for level := range l.levels {
		l.enlistLocked(r, level)
	}
}

// delistLocked takes the first out of the ring.
func (l *lane) delistLocked(level int) {
	r := l.groups.rings[level].pop()
	l.groups.at(r).inRing &^= 1 << level
	l.groups.drop(r)
}

// groupHeadLocked returns the oldest task of a group that is not gone; there
// must be one.
func (l *lane) groupHeadLocked(r ref, level int) entry {
	if r == 0 {
		return l.headLocked(level)
	}
	g := l.groups
	for {
		head := g.node(g.at(r).roots[level]).entry
		if !l.dropGoneLocked(head) {
			return head
		}
		g.pop(r, level)
	}
}

// refreshLocked finds out since when the oldest task of a level is ready whose
// group may give it. That costs a look at all groups in the ring at the worst,
// and is needed when the oldest was taken, which is about once in a round.
func (l *lane) refreshLocked(level int) {
	g := l.groups
	ring := &g.rings[level]
	for ring.n > 0 && !l.givesLocked(ring.at(0), level) {
		l.delistLocked(level)
	}
	if !g.stale[level] {
		return
	}
	oldest := never
	for i := 0; i < ring.n && oldest > g.oldest[level]; i++ { // none is older than what was the oldest
		if r := ring.at(i); l.givesLocked(r, level) { // others leave when they are the first
			oldest = min(oldest, l.groupHeadLocked(r, level).readyAt)
		}
	}
	g.stale[level], g.oldest[level] = false, oldest
}

// turnLocked finds whose turn it is at a level: the first in the ring whose
// oldest task has the best effective priority of all, which is that of the
// oldest. Nearly always that is the first of all.
func (l *lane) turnLocked(level int, best jobhost.Priority) (t turn, ok bool) {
	ring := &l.groups.rings[level]
	for i := range ring.n {
		r := ring.at(i)
		if !l.givesLocked(r, level) {
			continue
		}
		if head := l.groupHeadLocked(r, level); l.effectiveLocked(level, head.readyAt) == best {
			return turn{entry: head, group: r, place: i}, true
		}
	}
	return turn{}, false
}

// effectiveLocked is the priority of a task of a level that is ready since a time.
func (l *lane) effectiveLocked(level int, since record.Millis) jobhost.Priority {
	age := time.Duration(l.horizon-min(since, l.horizon)) * time.Millisecond
	return jobhost.PriorityAt(level).Effective(age, l.q.cfg.Aging)
}

// nextTurnLocked is what chooseLocked is for a lane with groups: the level with
// the best effective priority, of equals that with the oldest task, says which
// of its groups has its turn.
func (l *lane) nextTurnLocked() (t turn, ok bool) {
	best, priority, oldest := -1, jobhost.Priority(0), never
	for level := range l.levels {
		l.refreshLocked(level)
		since := l.groups.oldest[level]
		if since == never {
			continue
		}
		effective := l.effectiveLocked(level, since)
		if best < 0 || effective < priority || effective == priority && since < oldest {
			best, priority, oldest = level, effective, since
		}
	}
	if best < 0 {
		return turn{}, false
	}
	return l.turnLocked(best, priority)
}

// takeTurnLocked takes the task out, and returns its group.
func (l *lane) takeTurnLocked(t turn) record.Group {
	g, level := l.groups, int(t.level)
	g.stale[level] = g.stale[level] || t.readyAt <= g.oldest[level]
	g.rings[level].rotate(t.place)
	g.at(g.rings[level].pop()).inRing &^= 1 << level
	l.ready[level]--
	if t.group == 0 {
		l.levels[level].pop()
		l.enlistLocked(0, level)
		return 0
	}
	g.pop(t.group, level)
	g.ready[level]--
	gr := g.at(t.group)
	gr.live[level]--
	g.run(t.group, 1)
	for other, n := range gr.live { // a group that is full now takes its tasks along
		g.stale[other] = g.stale[other] || n > 0 && g.full(t.group)
	}
	l.enlistLocked(t.group, level)
	return gr.id
}

// leaveGroupLocked notes that a lease no longer counts for its concurrency key.
func (l *lane) leaveGroupLocked(lease *Lease) {
	id := lease.group
	if id == 0 {
		return
	}
	lease.group = 0
	g := l.groups
	r := g.refs[id]
	g.run(r, -1)
	l.enlistAllLocked(r)
	g.drop(r)
	if len(g.refs) == 0 {
		l.groups = nil
	}
}

// uncountGroupLocked takes so many off the numbers that count a ready task.
func (l *lane) uncountGroupLocked(e entry, id record.Group, n int) {
	g := l.groups
	r := g.refs[id]
	g.at(r).live[e.level] -= uint32(n)
	g.ready[e.level] -= n
	if n < 0 {
		l.enlistLocked(r, int(e.level))
	}
}

// sweepGroupsLocked takes out what is marked as gone.
func (l *lane) sweepGroupsLocked() {
	if l.groups == nil {
		return
	}
	old := l.groups
	l.groups = newGroups(old.limit)
	l.groups.breakers = old.breakers
	for id, r := range old.refs {
		if n := old.at(r).running; n > 0 {
			l.groups.run(l.groups.find(id), n)
		}
	}
	for e, r := range old.all() {
		if !l.dropGoneLocked(e) {
			l.groups.push(e, old.at(r).id)
		}
	}
	for level := range l.levels {
		l.enlistLocked(0, level)
	}
	for _, r := range l.groups.refs {
		l.enlistAllLocked(r)
	}
	for id := range l.groups.breakers.byGroup {
		if _, there := l.groups.refs[id]; !there {
			l.groups.breakers.forget(id)
		}
	}
	if len(l.groups.refs) == 0 {
		l.groups = nil
	}
}

// nearLocked yields tasks of a level whose turn is near, in about their order:
// the tops of the heaps of the groups that are first in the ring.
func (l *lane) nearLocked(level int) iter.Seq[entry] {
	if l.groups == nil {
		return l.levels[level].all()
	}
	return func(yield func(entry) bool) {
		ring := &l.groups.rings[level]
		each := max(2*readAhead/max(ring.n, 1), 1)
		for i := range min(ring.n, 2*readAhead) {
			some := l.groups.tops(ring.at(i), level, each)
			if ring.at(i) == 0 {
				some = l.levels[level].all()
			}
			n := 0
			for e := range some {
				if n++; n > each {
					break
				}
				if !yield(e) {
					return
				}
			}
		}
	}
}
