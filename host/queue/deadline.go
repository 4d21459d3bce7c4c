package queue

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// expireLocked takes out the tasks whose deadline has passed. They are no longer
// handed out; a goroutine of the clock's makes their end durable.
func (l *lane) expireLocked() {
	for {
		w, ok := l.order.Expire()
		if !ok {
			return
		}
		l.forgetLocked(w.Key)
		l.bodies.forget(w.Key)
		if l.expiring == nil {
			l.expiring = map[record.Key]order.Waiting{}
		}
		l.expiring[w.Key] = w
		if !l.ends && !l.q.closed.Load() {
			l.ends = true
			l.q.inflight.Add(1)
			time.AfterFunc(0, l.expire)
		}
	}
}

// restoreLocked lets a task wait again whose end could not be made durable, and
// tries it again after a while.
func (l *lane) restoreLocked(w order.Waiting) {
	delete(l.expiring, w.Key)
	w.Deadline = l.order.Now() + record.Millis(retryStore/time.Millisecond)
	l.order.Restore(w)
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
			keys[i] = w.Key
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
			switch body := open[w.Key]; {
			case err != nil:
				l.expired(w, err)
			case body != nil && body.Token == int64(w.Token):
				l.giveUp(w, body)
			default:
				// It was cancelled. The cancel forgets it, which may be still to come.
			}
		}
	}
}

// someExpiring returns tasks that were taken out and are not on their way yet.
func (l *lane) someExpiring() []order.Waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	var some []order.Waiting
	for key, w := range l.expiring {
		if l.q.closed.Load() {
			break // the next queue will end them
		}
		if w.Deadline == 0 {
			continue // on its way
		}
		some = append(some, w)
		w.Deadline = 0
		l.expiring[key] = w
		if len(some) == readAhead {
			break
		}
	}
	l.ends = len(some) > 0
	return some
}

// expired forgets a task that has ended; with an error it has not.
func (l *lane) expired(w order.Waiting, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if there := l.expiring[w.Key]; there.Key == 0 || there.Token != w.Token {
		return // it was cancelled in the meantime
	}
	if err != nil {
		l.restoreLocked(w)
		l.pumpLocked()
		return
	}
	if l.expiring[w.Key].Token == w.Token { // not one of a later lease
		delete(l.expiring, w.Key)
	}
	l.bodies.forget(w.Key) // it may have been read ahead while it was open still
}

// giveUp ends one task.
func (l *lane) giveUp(w order.Waiting, body *record.Body) {
	q, now := l.q, l.q.clock.now()
	lease := &Lease{Body: *body, lane: l, entry: w.Entry, TakenAt: now, ReadyAt: w.ReadyAt.Time(), endedAt: now}
	op := &record.Settle{
		Key: w.Key, Token: body.Token, Attempt: body.Attempt, EndedAt: record.MillisOf(now),
		Failure: &jobhost.Failure{
			Code: jobhost.FailDeadline, Category: jobhost.CategoryTimeout, Severity: jobhost.SeverityError,
			Message: "its deadline passed while it waited", Task: body.Index, Attempt: body.Attempt,
			StartedAt: now.UTC(), EndedAt: now.UTC(),
		},
	}
	l.makeDead(op, body.Job, now)
	q.commitSettle(op, body.Job, func(result record.OpResult, err error) {
		if err != nil {
			l.expired(w, err)
			return
		}
		l.expired(w, nil)
		if result.Err == nil {
			lease.Attempt-- // there was none for this end
			q.events.settled(lease, jobhost.OutcomeFailed, op, jobhost.Dead, result)
		}
	})
}
