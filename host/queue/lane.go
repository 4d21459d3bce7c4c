package queue

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/rate"
)

// lane holds the open tasks of one worker that this process has claimed: those
// that wait, which are in its order, and those that run. It is the lock around
// them, and hands tasks to slots. It is a window over the store and never the truth.
//
//	claim, submit ─► order.Push ─► order.Next, order.Take ─► running ─► settled
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
	order    order.Order          // of the tasks that wait
	timer    alarm[record.Millis] // rings when the next of them is due
	pending  int                  // tasks of submits under way; they have their place already
	claims   claims               // of the tasks that the store has

	granted place                 // that a task which ended has left to this lane
	running map[record.Key]*Lease // current leases; those of cancelled attempts are not here
	idle    []*Slot               // slots that wait for a task; the last one waits the shortest

	bodies bodyCache

	// expiring are the tasks past their deadline whose end is not durable yet;
	// those that are on their way have deadline 0.
	expiring map[record.Key]order.Waiting
	ends     bool // a goroutine makes their ends durable

	rate        rate.Rate
	resumed     bool             // the rate goes on where it was in the life before
	breaker     *sharedBreaker   // nil = none
	jobBreakers jobBreakers      // those that jobs bring along
	wake        alarm[time.Time] // rings when what holds the lane, or a group of it, has ended

	// away are the payload stores that tasks wait for which the order has set aside.
	away map[record.Key]*Away
	// misses counts by task how often it has met a fault of a payload store.
	misses map[record.Key]int
}

func newLane(q *Queue, name string) *lane {
	l := &lane{
		q:       q,
		name:    name,
		mode:    jobhost.WorkerRunning,
		running: map[record.Key]*Lease{},
		bodies:  newBodyCache(q),
	}
	l.order = order.New(q.cfg.Aging, l.jobBreakers.forget)
	l.parked.Store(true)
	return l
}

// waitingLocked returns the number of tasks that wait or are about to.
func (l *lane) waitingLocked() int { return l.pending + l.order.Len() }

// removeLocked takes out a waiting task that was cancelled.
func (l *lane) removeLocked(e order.Entry, id record.Group) {
	l.forgetLocked(e.Key)
	l.order.Remove(e, id)
}

// forgetLocked forgets what a task has met of payload stores.
func (l *lane) forgetLocked(key record.Key) {
	delete(l.misses, key)
	delete(l.away, key)
}

// advanceLocked makes ready what is due, and sets the timer for what is next.
func (l *lane) advanceLocked() {
	l.order.Advance(record.MillisOf(l.q.clock.now()))
	l.expireLocked()
	next, some := l.order.Due()
	if !some || next == l.timer.at || l.q.closed.Load() {
		return
	}
	l.timer.set(next, time.Duration(next-l.order.Now())*time.Millisecond, l.due)
}

// due runs when a task that waits is due.
func (l *lane) due() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.at = 0
	l.pumpLocked()
}

// soonLocked reports whether a task that is ready at the time given is worth
// its place in the cache of bodies.
func (l *lane) soonLocked(readyAt record.Millis) bool {
	return readyAt <= l.order.Now()+record.Millis(soon/time.Millisecond)
}

// soon is short against the time in which a full cache is used up.
const soon = time.Second

// pumpLocked hands tasks to idle slots while there are both.
func (l *lane) pumpLocked() {
	l.advanceLocked()
	for len(l.idle) > 0 && l.order.AnyReady() && !l.q.closed.Load() {
		if l.holdLocked() != notHeld {
			l.wakeLocked()
			return
		}
		next, some := l.order.Next()
		if !some {
			return // the tasks of a key that has too many wait for their end
		}
		if l.jobHoldsLocked(next.Group) {
			continue
		}
		slot, place, ok := l.chooseLocked()
		if !ok {
			return
		}
		lease := &Lease{lane: l, TakenAt: l.q.clock.now(), place: place}
		if !l.passLocked(lease, next.Group) {
			time.AfterFunc(0, place.leave)
			continue // the look at what holds tasks finds it now
		}
		task := l.order.Take(next)
		lease.entry, lease.group, lease.unread = task.Entry, task.Group, task.Traits
		l.handLocked(lease, slot)
	}
}

// handLocked gives a lease to the slot with that index.
func (l *lane) handLocked(lease *Lease, index int) {
	if lease.refusedBy == "" {
		l.rate.Take(lease.TakenAt)
	}
	l.running[lease.entry.Key] = lease
	slot := l.idle[index]
	if last := len(l.idle) - 1; index == last {
		l.idle = l.idle[:last]
	} else {
		l.idle = slices.Delete(l.idle, index, index+1)
	}
	slot.handed <- lease // has room: a slot waits for one lease at a time
}

// leaveGroupLocked notes that a lease no longer counts for its group.
func (l *lane) leaveGroupLocked(lease *Lease) {
	if lease.group == 0 {
		return
	}
	l.order.Leave(lease.group)
	lease.group = 0
}

// stop ends the lane's timer; nothing is handed out any more.
func (l *lane) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.stop()
	l.wake.stop()
}
