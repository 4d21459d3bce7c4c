package queue

import (
	"errors"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// Settle ends a lease. It returns at once: the slot is free for the next task
// while the settlement becomes durable; only when very many settlements are
// under way it waits. A settlement whose lease is no longer held (the job was
// cancelled) changes nothing.
func (q *Queue) Settle(lease *Lease, report Report) {
	lease.endedAt = q.clock.now()
	q.spare(lease, &report)
	q.breakers.judge(lease, verdictOf(&report.Outcome))
	if report.Kept != nil {
		q.keepResult(lease, report)
	} else {
		q.conclude(lease, report)
	}
	lease.place.leave()
}

func (q *Queue) conclude(lease *Lease, report Report) {
	op, state := q.decide(lease, report)
	if report.Effects != nil {
		if state == jobhost.Succeeded {
			q.commitEffects(lease, report, op)
			return
		}
		report.Effects.release()
	}
	if op == nil { // cancelled, which is durable already
		lease.lane.finish(lease)
		q.events.observe(lease, nil, report.Outcome.Kind, jobhost.Cancelled)
		return
	}
	q.commitSettle(op, lease.Job, func(result record.OpResult, err error) {
		if err == nil {
			err = result.Err
		}
		if err != nil {
			q.settleFailed(lease, err)
			return
		}
		q.attemptEnded(lease, report.Outcome.Kind, op, state, result)
	})
}

// commitSettle hands a settlement over, with the callback of its job. done runs
// on the store's goroutine; its error is that of the batch.
func (q *Queue) commitSettle(op *record.Settle, job *record.JobSpec, done func(record.OpResult, error)) {
	op.Then = q.then(job, op)
	if job.Origin != nil {
		op.Transition = q.cfg.Workflows.Settled(job, op)
	}
	follows := op.Then != nil || op.Transition != nil
	if follows { // jobs come to lanes that are looked up by name
		q.lanes.opening.RLock()
	}
	q.inflight.Add(1)
	q.store.Commit([]record.Op{op}, func(results []record.OpResult, err error) {
		defer q.inflight.Done()
		if follows {
			defer q.lanes.opening.RUnlock()
		}
		if err != nil {
			q.objects.releaseResult(op, record.OpResult{Err: err})
			done(record.OpResult{}, err)
			return
		}
		q.objects.releaseResult(op, results[0])
		q.tellGone(results[0])
		done(results[0], nil)
		q.follow(results[0])
		if results[0].Err == nil {
			q.transitioned(op.Transition, results[0])
		}
	})
}

// attemptEnded runs when a settlement is durable.
func (q *Queue) attemptEnded(lease *Lease, kind jobhost.OutcomeKind, op *record.Settle, state jobhost.State, result record.OpResult) {
	l := lease.lane
	l.finish(lease)
	// Published before the next attempt can begin, so that events are in order.
	q.events.settled(lease, kind, op, state, result)
	q.evicted(lease.Job.Worker, result.Evicted, result.Removed)
	if op.Status != record.Open {
		return
	}
	next := lease.entry
	next.Token++
	next.ReadyAt, next.Tried = op.ReadyAt, op.Attempt > 0
	l.mu.Lock()
	defer l.mu.Unlock()
	if lease.fault != nil {
		l.againLocked(next, lease)
		l.pumpLocked()
		return
	}
	l.order.Push(next, lease.traits())
	if l.soonLocked(next.ReadyAt) {
		body := lease.Body
		body.Token, body.Attempt = int64(next.Token), op.Attempt
		body.Suspect = body.Suspect || op.Suspect
		l.bodies.keep(&body)
	}
	l.pumpLocked()
}

// traits are those of the lease's task, when it waits again.
func (l *Lease) traits() order.Traits {
	if l.Job == nil { // it was not read
		return l.unread
	}
	return order.Traits{Group: l.Job.Group(), Deadline: l.Deadline}
}

// settleFailed runs when a settlement was refused or could not be made durable.
// A refused one is no fault: the job was cancelled while the attempt ran.
// Otherwise the task is still open in the store, under the same lease, and runs
// again; or the store has failed, and the next queue finds what became of it.
func (q *Queue) settleFailed(lease *Lease, err error) {
	if errors.Is(err, record.ErrFenced) {
		lease.lane.finish(lease)
		q.events.observe(lease, nil, jobhost.OutcomeCancelled, jobhost.Cancelled)
		return
	}
	if !errors.Is(err, record.ErrTermOver) { // which is logged once, and not for each task
		q.cfg.Logger.Error("settlement is not durable; the task will run again",
			logkey.Job, lease.Job.ID, logkey.Task, lease.Index, logkey.Error, err)
	}
	lease.lane.putBack(lease)
}

// retryStore is how long a task waits that met a store which didn't work.
const retryStore = time.Second

// putBack makes a leased task wait again, under the same lease; false = it was
// cancelled in the meantime.
func (l *lane) putBack(lease *Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveGroupLocked(lease)
	l.q.suspects.leave(lease)
	if l.running[lease.entry.Key] != lease {
		lease.noted.End()
		l.pumpLocked()
		return false
	}
	delete(l.running, lease.entry.Key)
	lease.noted.End()
	e := lease.entry
	e.ReadyAt = record.MillisOf(l.q.clock.now().Add(retryStore))
	l.order.PutBack(e, lease.traits())
	l.pumpLocked()
	return true
}

// commitEffects commits a success with effects.
func (q *Queue) commitEffects(lease *Lease, report Report, op *record.Settle) {
	children := report.Effects.Children
	op.Effects = &record.Effects{KV: report.Effects.KV, Quota: report.Effects.Quota}
	for _, child := range children {
		op.Effects.Jobs = append(op.Effects.Jobs, child.Job)
	}
	q.commitSettle(op, lease.Job, func(result record.OpResult, err error) {
		if err == nil && result.Err == nil {
			// Published before the end of their parent, for which a caller may wait.
			for i, child := range children {
				added := result.Jobs[i]
				q.submitted(child.lane, child.Job, record.OpResult{Key: added.Key, Existing: added.Existing})
			}
			q.attemptEnded(lease, report.Outcome.Kind, op, jobhost.Succeeded, result)
			return
		}
		if err != nil {
			report.Effects.forsake()
			q.settleFailed(lease, err)
			return
		}
		report.Effects.release()
		report.Effects = nil
		q.effectsRefused(lease, report, result.Err)
	})
}

// effectsRefused goes on with an attempt whose settlement was refused. When its lease
// is gone, that is the end of it. When its effects can't be applied, it has
// failed, which needs a settlement of its own: from another goroutine, since
// the store's callbacks must not wait for room in the store.
func (q *Queue) effectsRefused(lease *Lease, report Report, err error) {
	failure := inapplicable(err)
	if failure == nil {
		q.settleFailed(lease, err)
		return
	}
	report.Outcome = jobhost.Outcome{Kind: jobhost.OutcomeFailed, Fuel: report.Outcome.Fuel, Failure: failure}
	q.inflight.Add(1)
	time.AfterFunc(0, func() {
		defer q.inflight.Done()
		q.conclude(lease, report)
	})
}
