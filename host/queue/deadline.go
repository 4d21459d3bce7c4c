package queue

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// deadlines are the waiting tasks that are given up at some time, the next one
// first. A task that is taken or cancelled is forgotten in waits at once; its
// place in the heap is passed over later.
type deadlines struct {
	next  entryHeap // readyAt is the deadline
	waits map[record.Key]waiting
}

// waiting is a task that waits, with what else the lane must know of it.
type waiting struct {
	entry
	traits
}

// traits are what few tasks have; the zero value is none.
type traits struct {
	group    record.Group
	deadline record.Millis // 0 = none
}

// add notes a task with a deadline that begins to wait.
func (d *deadlines) add(e entry, x traits) {
	if d.waits == nil {
		d.waits = map[record.Key]waiting{}
	}
	d.waits[e.key] = waiting{e, x}
	d.next.push(entry{key: e.key, readyAt: x.deadline, token: e.token})
	if d.next.n > 2*len(d.waits)+mostGone {
		d.sweep()
	}
}

// forget takes out a task that doesn't wait any more, and returns its deadline.
func (d *deadlines) forget(key record.Key) record.Millis {
	if len(d.waits) == 0 {
		return 0
	}
	w := d.waits[key]
	delete(d.waits, key)
	return w.deadline
}

// due takes out a task whose deadline has passed.
func (d *deadlines) due(now record.Millis) (w waiting, ok bool) {
	for d.next.n > 0 && d.next.peek().readyAt <= now {
		e := d.next.pop()
		if w, ok = d.waits[e.key]; ok && w.token == e.token && w.deadline == e.readyAt {
			delete(d.waits, e.key)
			return w, true
		}
	}
	return waiting{}, false
}

// sweep takes what was forgotten out of the heap.
func (d *deadlines) sweep() {
	d.next = entryHeap{}
	for key, w := range d.waits {
		d.next.push(entry{key: key, readyAt: w.deadline, token: w.token})
	}
}

// expireLocked takes out the tasks whose deadline has passed. They are no longer
// handed out; a goroutine of the clock's makes their end durable.
func (l *lane) expireLocked() {
	for {
		w, ok := l.deadlines.due(l.horizon)
		if !ok {
			return
		}
		l.removeLocked(w.entry, w.group)
		l.bodies.forget(w.key)
		if l.expiring == nil {
			l.expiring = map[record.Key]waiting{}
		}
		l.expiring[w.key] = w
		if !l.ends && !l.q.closed.Load() {
			l.ends = true
			l.q.inflight.Add(1)
			time.AfterFunc(0, l.expire)
		}
	}
}

// restoreLocked lets a task wait again whose end could not be made durable, and
// tries it again after a while.
func (l *lane) restoreLocked(w waiting) {
	delete(l.expiring, w.key)
	mark := goneEntry{w.key, w.token}
	if _, there := l.gone[mark]; there { // so is the entry
		delete(l.gone, mark)
		l.uncountLocked(w.entry, w.group, -1)
	} else {
		l.pushLocked(w.entry, traits{group: w.group})
	}
	w.deadline = l.horizon + record.Millis(retryStore/time.Millisecond)
	l.deadlines.add(w.entry, w.traits)
}

// expire ends the tasks whose deadline has passed, some at a time.
func (l *lane) expire() {
	defer l.q.inflight.Done()
	for {
		some := l.someExpiring()
		if len(some) == 0 {
			return
		}
		keys := make([]record.Key, len(some))
		for i, w := range some {
			keys[i] = w.key
		}
		bodies, err := l.q.store.Load(context.Background(), keys)
		if err != nil {
			l.q.cfg.Logger.Error("tasks past their deadline can't be read; they will be tried again",
				logkey.Worker, l.name, logkey.Error, err)
		}
		open := make(map[record.Key]*record.Body, len(bodies))
		for i := range bodies {
			open[bodies[i].Key] = &bodies[i]
		}
		for _, w := range some {
			switch body := open[w.key]; {
			case err != nil:
				l.expired(w, err)
			case body != nil && body.Token == int64(w.token):
				l.giveUp(w, body)
			default:
				// It was cancelled. The cancel forgets it, which may be still to come.
			}
		}
	}
}

// someExpiring returns tasks that were taken out and are not on their way yet.
func (l *lane) someExpiring() []waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	var some []waiting
	for key, w := range l.expiring {
		if l.q.closed.Load() {
			break // the next queue will see to them
		}
		if w.deadline == 0 {
			continue // on its way
		}
		some = append(some, w)
		w.deadline = 0
		l.expiring[key] = w
		if len(some) == readAhead {
			break
		}
	}
	l.ends = len(some) > 0
	return some
}

// expired forgets a task that has ended; with an error it has not.
func (l *lane) expired(w waiting, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if there := l.expiring[w.key]; there.key == 0 || there.token != w.token {
		return // it was cancelled meanwhile
	}
	if err != nil {
		l.restoreLocked(w)
		l.pumpLocked()
		return
	}
	if l.expiring[w.key].token == w.token { // not one of a later lease
		delete(l.expiring, w.key)
	}
	l.bodies.forget(w.key) // it may have been read ahead while it was open still
}

// giveUp ends one task.
func (l *lane) giveUp(w waiting, body *record.Body) {
	q, now := l.q, l.q.clock.now()
	lease := &Lease{Body: *body, lane: l, entry: w.entry, TakenAt: now, ReadyAt: w.readyAt.Time(), endedAt: now}
	op := &record.Settle{
		Key: w.key, Token: body.Token, Attempt: body.Attempt, EndedAt: record.MillisOf(now),
		Failure: &jobhost.Failure{
			Code: jobhost.FailDeadline, Category: jobhost.CategoryTimeout, Severity: jobhost.SeverityError,
			Message: "its deadline passed while it waited", Task: body.Index, Attempt: body.Attempt,
			StartedAt: now.UTC(), EndedAt: now.UTC(),
		},
	}
	l.bury(op, body.Job, now)
	q.commitSettle(op, body.Job, func(result record.OpResult, err error) {
		if err != nil {
			l.expired(w, err)
			return
		}
		l.expired(w, nil)
		if result.Err == nil {
			lease.Attempt-- // there was none for this end
			q.publishSettled(lease, jobhost.OutcomeFailed, op, jobhost.Dead, result)
		}
	})
}
