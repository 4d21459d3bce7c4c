package queue

import (
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/breaker"
)

// jobBreaker is a breaker that jobs bring along, as a lane knows it: from the first
// task that it reads of a group, to the group's end. While it holds, its groups are
// full: their tasks stay where they are, and those of others go on.
type jobBreaker struct {
	*sharedBreaker
	lane   *lane
	groups map[record.Group]struct{} // whose tasks meet it
	holds  bool                      // no task was let pass when it was looked at last
	until  time.Time                 // of holds; the zero time = not by time
}

// jobBreakers are those of a lane's groups. The zero value has none.
type jobBreakers struct {
	byGroup map[record.Group]*jobBreaker
	byKey   map[string]*jobBreaker
}

// holds reports whether a breaker holds the tasks of a group.
func (bs *jobBreakers) holds(id record.Group) bool {
	b := bs.byGroup[id]
	return b != nil && b.holds
}

// until is when the first of the breakers that hold may let tasks pass; the zero
// time = none by time.
func (bs *jobBreakers) until() (first time.Time) {
	for _, b := range bs.byKey {
		if b.holds && !b.until.IsZero() && (first.IsZero() || b.until.Before(first)) {
			first = b.until
		}
	}
	return first
}

// forget takes a group off its breaker.
func (bs *jobBreakers) forget(id record.Group) {
	b := bs.byGroup[id]
	if b == nil {
		return
	}
	delete(bs.byGroup, id)
	delete(b.groups, id)
	if len(b.groups) == 0 {
		delete(bs.byKey, b.key)
		b.lane.q.breakers.leave(b)
	}
}

// learnLocked notes which breaker the tasks of a group meet. There must be such a group.
func (l *lane) learnLocked(id record.Group, policy jobhost.BreakerPolicy) *jobBreaker {
	bs := &l.jobBreakers
	if b := bs.byGroup[id]; b != nil {
		return b
	}
	if bs.byGroup == nil {
		bs.byGroup, bs.byKey = map[record.Group]*jobBreaker{}, map[string]*jobBreaker{}
	}
	b := bs.byKey[policy.Key]
	if b == nil {
		b = &jobBreaker{lane: l, groups: map[record.Group]struct{}{}}
		b.sharedBreaker = l.q.breakers.joinJobs(policy, l)
		bs.byKey[policy.Key] = b
	}
	b.groups[id], bs.byGroup[id] = struct{}{}, b
	if b.holds {
		l.order.Hold(id)
	}
	return b
}

// jobHoldsLocked reports whether the breaker of a group's jobs holds them, if it is known.
func (l *lane) jobHoldsLocked(id record.Group) bool {
	if id == 0 {
		return false
	}
	b := l.jobBreakers.byGroup[id]
	return b != nil && l.lookLocked(b)
}

// lookLocked looks at where a breaker stands, and holds its groups or lets them go on.
func (l *lane) lookLocked(b *jobBreaker) (held bool) {
	held, b.until = b.Holds(l.q.clock.now())
	switch {
	case held:
		if !b.holds {
			b.holds = true
			for id := range b.groups {
				l.order.Hold(id)
			}
		}
		l.wakeLocked()
	case b.holds:
		b.holds = false
		for id := range b.groups {
			l.order.Release(id)
		}
	}
	return held
}

// lookAgainLocked lets those groups go on whose breakers hold them no longer.
func (l *lane) lookAgainLocked() {
	for _, b := range l.jobBreakers.byKey {
		if b.holds {
			l.lookLocked(b)
		}
	}
}

// passLocked lets a lease of a group pass its worker's breaker, and that of its job if
// it is known. It fails only where another lane was quicker since the last look at
// them.
func (l *lane) passLocked(lease *Lease, id record.Group) bool {
	if l.breaker != nil && !lease.pass(&lease.passage, l.breaker) {
		return false
	}
	if id == 0 {
		return true
	}
	b := l.jobBreakers.byGroup[id]
	if b == nil || l.passJobLocked(lease, b) {
		return true
	}
	if p := lease.passage; p.End(breaker.None, lease.TakenAt) {
		// Another lane may have met the probe that this one gives back.
		time.AfterFunc(0, func() { l.q.breakers.changed(p.of) })
	}
	return false
}

// passJobLocked lets a lease pass the breaker of its job. Where that is its worker's
// too it is passed once: it would take two probes for one task.
func (l *lane) passJobLocked(lease *Lease, b *jobBreaker) bool {
	lease.metJobBreaker = true
	return lease.refusedBy != "" || b.sharedBreaker == l.breaker || lease.pass(&lease.jobPassage, b.sharedBreaker)
}

// pass lets the lease pass a breaker, possibly in order to fail.
func (l *Lease) pass(p *passage, b *sharedBreaker) bool {
	passed, ok := b.Pass(l.TakenAt)
	if passed.Refused {
		l.refusedBy = b.key
	}
	if passed.Judges() {
		*p = passage{passed, b}
	}
	return ok
}

// meetJobBreaker lets a lease pass the breaker of its job, unless it has when it was chosen. The
// lane doesn't know of it before it has read a task of the group. False = it holds,
// and the task waits again in its place.
func (l *lane) meetJobBreaker(lease *Lease, body *record.Body) bool {
	policy := body.Job.Breaker
	if policy == nil || lease.metJobBreaker || lease.group == 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.learnLocked(lease.group, *policy)
	if l.passJobLocked(lease, b) {
		if lease.refusedBy != "" {
			l.rate.GiveBack()
		}
		return true
	}
	l.rate.GiveBack()
	if e := lease.entry; l.running[e.Key] == lease { // else it was cancelled in the meantime
		delete(l.running, e.Key)
		l.order.PutBack(e, lease.unread)
		l.bodies.keep(body)
	}
	l.lookLocked(b)
	l.leaveGroupLocked(lease)
	l.pumpLocked()
	return false
}
