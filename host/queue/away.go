package queue

import (
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload"
)

// Away says that a payload store can't be read, or can't be written to. That is the
// host's trouble and not the guests': attempts that meet it don't count, and tasks
// that need the store wait until it is back.
type Away struct {
	Store string
	Verb  payload.Verb // [payload.Get] or [payload.Put]
	Since time.Time
}

// StoreFault is in the chain of errors of [Objects] that may pass.
type StoreFault struct {
	Store string
	Verb  payload.Verb
	// Young says that the store has answered that there is no such object, and that
	// the object is so young that the store may only not show it yet.
	Young bool
	Err   error
}

// Error implements error.
func (f *StoreFault) Error() string { return f.Err.Error() }

// Unwrap returns the store's own error.
func (f *StoreFault) Unwrap() error { return f.Err }

// Absences knows which payload stores are away. Its methods don't block and may be
// called with locks held.
type Absences interface {
	// Unread returns why the object of a reference can't be read; nil = it can, as
	// far as is known.
	Unread(ref string) *Away
	// Unwritten returns why nothing can be written; nil = it can.
	Unwritten() *Away
	// Room reports whether results can be kept until Unwritten has ended.
	Room() bool
	// Still reports whether a store is away still that was.
	Still(away *Away) bool
}

// Kept is a result that its payload store doesn't take now.
type Kept interface {
	// Then calls f once: with a reference to the result when the store has taken it,
	// or with an error when the host stops before that. It doesn't wait for it.
	Then(f func(payload.Ref, error))
}

// mostMisses is how often a task may meet a fault of a store without losing an
// attempt. It is for an object that can't be read in a store that gives all others.
const mostMisses = 20

// How long a task waits that has met a fault of a store which isn't away.
const (
	missFirst = 250 * time.Millisecond
	missMost  = 30 * time.Second
)

// missing returns which store a task must wait for: that of its payload, and that of
// its result if no more results can be kept and its worker has such large ones. Tasks
// with a small payload wait for none.
func (l *lane) missing(body *record.Body) *Away {
	absences := l.q.cfg.Absences
	if absences == nil || body.Job.Ref == "" {
		return nil
	}
	if away := absences.Unread(body.Job.Ref); away != nil {
		return away
	}
	if l.spills.Load() && !absences.Room() {
		return absences.Unwritten()
	}
	return nil
}

// reachPayload reports whether the store of a task's payload can be read, as far as is known.
// If not, the task is put aside: no slot waits for it.
func (l *lane) reachPayload(lease *Lease, body *record.Body) bool {
	away := l.missing(body)
	if away == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate.GiveBack()
	if l.running[lease.entry.Key] == lease { // else it was cancelled in the meantime
		delete(l.running, lease.entry.Key)
		l.asideLocked(lease.entry, lease.unread, away)
	}
	l.leaveGroupLocked(lease)
	l.pumpLocked()
	return false
}

// asideLocked puts a task aside until a store is back.
func (l *lane) asideLocked(e order.Entry, x order.Traits, away *Away) {
	l.order.SetAside(e, x)
	if l.away == nil {
		l.away = map[record.Key]*Away{}
	}
	l.away[e.Key] = away
	if !l.q.cfg.Absences.Still(away) { // it came back before the task was here to be found
		l.releaseLocked()
	}
}

// releaseLocked lets those tasks wait for a slot again whose store is back, in the
// order in which they would have run.
func (l *lane) releaseLocked() {
	l.order.BringBack(func(key record.Key) bool {
		if l.q.cfg.Absences.Still(l.away[key]) {
			return false
		}
		delete(l.away, key)
		return true
	})
	if len(l.away) == 0 {
		l.away = nil // a map never gets smaller
	}
}

// StoresChanged lets tasks go on that wait for a payload store which is back.
func (q *Queue) StoresChanged() {
	for _, l := range q.lanes.all() {
		l.mu.Lock()
		if q.cfg.Absences.Unwritten() == nil {
			l.spills.Store(false)
		}
		l.releaseLocked()
		l.pumpLocked()
		l.mu.Unlock()
	}
}

// spare turns the outcome of an attempt that met a fault of a store into one that
// doesn't count, within bounds.
func (q *Queue) spare(lease *Lease, report *Report) {
	fault, l := report.Fault, lease.lane
	if fault == nil || q.cfg.Absences == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.misses[lease.Key]; n >= mostMisses && !fault.Young {
		delete(l.misses, lease.Key)
		return
	}
	if l.misses == nil {
		l.misses = map[record.Key]int{}
	}
	l.misses[lease.Key]++
	if fault.Verb == payload.Put {
		l.spills.Store(true)
	}
	lease.fault = fault
	report.Outcome = jobhost.Outcome{Kind: jobhost.OutcomeReturned, Fuel: report.Outcome.Fuel}
}

// againLocked lets a task wait that has met a fault of a store: for the store if it is
// away, and for a while if it isn't.
func (l *lane) againLocked(e order.Entry, lease *Lease) {
	away := l.q.cfg.Absences.Unwritten()
	if lease.fault.Verb == payload.Get {
		away = l.q.cfg.Absences.Unread(lease.Job.Ref)
	}
	if away != nil && !lease.fault.Young {
		l.asideLocked(e, lease.traits(), away)
		return
	}
	wait := missFirst << min(l.misses[e.Key]-1, 10)
	e.ReadyAt = record.MillisOf(l.q.clock.now().Add(min(max(wait, missFirst), missMost)))
	l.order.PutBack(e, lease.traits())
}

// keepResult lets the result of an attempt wait for its payload store. The attempt has
// ended: its slot and its places among those that run are free, and only the
// settlement is still to come. A crash before that makes the task run again.
func (q *Queue) keepResult(lease *Lease, report Report) {
	l, kept := lease.lane, report.Kept
	lease.noted.End() // the attempt is not to blame for a crash from now on
	lease.noted = nil
	l.spills.Store(true)
	l.mu.Lock()
	lease.kept = true
	l.leaveGroupLocked(lease)
	l.pumpLocked()
	l.mu.Unlock()
	report.Kept = nil
	kept.Then(func(ref payload.Ref, err error) {
		if err != nil {
			report.Effects.release()
			q.settleFailed(lease, err)
			return
		}
		report.Result = &ref
		q.conclude(lease, report)
	})
}
