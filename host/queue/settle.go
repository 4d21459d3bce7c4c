package queue

import (
	"errors"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state/payload"
)

// Report is what became of an attempt: its outcome and what it logged.
type Report struct {
	Outcome jobhost.Outcome
	// Result is where the output of a success is, if it is not in Outcome; nil =
	// it is there. It is held: see [Objects].
	Result *payload.Ref
	// Kept is a result that its payload store doesn't take now; nil = there is none.
	Kept Kept
	// Fault is what the attempt has met of a payload store; nil = nothing. Then it
	// doesn't count, whatever its outcome.
	Fault      *StoreFault
	Log        []byte // lines ended by \n
	LogDropped int64
	// Effects are what the attempt asked for; nil = nothing. They are applied if
	// it succeeded, and come to nothing otherwise.
	Effects *Asked
}

// Asked is what an attempt asked the host to change.
type Asked struct {
	KV       []record.KVChange
	Quota    int64 // of the worker's keys: see [record.Effects]
	Children []*Child
}

func (a *Asked) release() {
	if a == nil {
		return
	}
	for _, child := range a.Children {
		child.Release()
	}
}

// Settle ends a lease. It returns at once: the slot is free for the next task
// while the settlement becomes durable; only when very many settlements are
// under way it waits. A settlement whose lease is no longer held (the job was
// cancelled) changes nothing.
func (q *Queue) Settle(lease *Lease, report Report) {
	lease.endedAt = q.clock.now()
	q.spare(lease, &report)
	q.judge(lease, verdictOf(&report.Outcome))
	if report.Kept != nil {
		q.keep(lease, report)
	} else {
		q.settle(lease, report)
	}
	q.gate.leave(lease.memory)
}

func (q *Queue) settle(lease *Lease, report Report) {
	op, state := q.settlement(lease, report)
	if report.Effects != nil {
		if state == jobhost.Succeeded {
			q.settleEffects(lease, report, op)
			return
		}
		report.Effects.release()
	}
	if op == nil { // cancelled, which is durable already
		lease.lane.finish(lease)
		q.observe(lease, nil, report.Outcome.Kind, jobhost.Cancelled)
		return
	}
	q.commitSettle(op, lease.Job, func(result record.OpResult, err error) {
		if err == nil {
			err = result.Err
		}
		if err != nil {
			q.unsettled(lease, err)
			return
		}
		q.settled(lease, report.Outcome.Kind, op, state, result)
	})
}

// commitSettle hands a settlement over, with the callback of its job. told runs
// on the store's goroutine; its error is that of the batch.
func (q *Queue) commitSettle(op *record.Settle, job *record.JobSpec, told func(record.OpResult, error)) {
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
			q.releaseResult(op, record.OpResult{Err: err})
			told(record.OpResult{}, err)
			return
		}
		q.releaseResult(op, results[0])
		q.tellGone(results[0])
		told(results[0], nil)
		q.follow(results[0])
		if results[0].Err == nil {
			q.moved(op.Transition, results[0])
		}
	})
}

// settlement decides what the outcome makes of the task.
func (q *Queue) settlement(lease *Lease, report Report) (*record.Settle, jobhost.State) {
	now := lease.endedAt
	op := &record.Settle{
		Key:        lease.Key,
		Token:      lease.Token,
		Number:     lease.Number(),
		Attempt:    lease.Attempt,
		Patient:    true,
		StartedAt:  record.MillisOf(lease.TakenAt),
		EndedAt:    record.MillisOf(now),
		Log:        report.Log,
		LogDropped: report.LogDropped,
		Fuel:       report.Outcome.Fuel,
	}
	switch outcome := report.Outcome; outcome.Kind {
	case jobhost.OutcomeCancelled:
		return nil, jobhost.Cancelled
	case jobhost.OutcomeSucceeded:
		op.Attempt++
		op.Status, op.Result = record.Succeeded, outcome.Output
		if report.Result != nil {
			op.Result, op.ResultRef, op.ResultSize = nil, report.Result.String(), report.Result.Size
		}
		op.ExpiresAt = lease.lane.expires(lease.Job, jobhost.Succeeded, now)
		return op, jobhost.Succeeded
	case jobhost.OutcomeSnoozed:
		op.ReadyAt = record.MillisOf(now.Add(max(outcome.Snooze, time.Millisecond)))
		if lease.Attempt > 0 {
			return op, jobhost.Retrying
		}
		return op, jobhost.Scheduled
	case jobhost.OutcomeReturned:
		op.ReadyAt = lease.entry.ReadyAt
		return op, jobhost.Ready
	default:
		return q.failure(lease, op, &outcome, now)
	}
}

// failure decides between another attempt and the dead letters.
func (q *Queue) failure(lease *Lease, op *record.Settle, outcome *jobhost.Outcome, now time.Time) (*record.Settle, jobhost.State) {
	f := outcome.Failure
	op.Attempt++
	f.Task, f.Attempt = lease.Index, op.Attempt
	f.StartedAt, f.EndedAt = lease.TakenAt.UTC(), now.UTC()
	op.Failure = f
	op.Suspect = lease.crashed
	if !f.Retryable || op.Attempt >= lease.Job.MaxAttempts {
		lease.lane.bury(op, lease.Job, now)
		return op, jobhost.Dead
	}
	if lease.crashed { // it has waited for the host already
		op.ReadyAt = lease.entry.ReadyAt
		return op, jobhost.Ready
	}
	retry := &lease.lane.worker.Load().Retry
	if lease.Job.Retry != nil {
		retry = lease.Job.Retry
	}
	delay := retry.Delay(op.Attempt+1, q.cfg.Random())
	op.ReadyAt = record.MillisOf(now.Add(max(delay, outcome.RetryAfter)))
	return op, jobhost.Retrying
}

// bury lets a settlement make its task a dead letter.
func (l *lane) bury(op *record.Settle, job *record.JobSpec, now time.Time) {
	op.Status = record.Dead
	op.ExpiresAt = l.expires(job, jobhost.Dead, now)
	op.MaxDead = l.worker.Load().Retention.MaxEntries
}

// settled runs when a settlement is durable.
func (q *Queue) settled(lease *Lease, kind jobhost.OutcomeKind, op *record.Settle, state jobhost.State, result record.OpResult) {
	l := lease.lane
	l.finish(lease)
	// Told before the next attempt can begin, so that events are in order.
	q.publishSettled(lease, kind, op, state, result)
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

// unsettled runs when a settlement was refused or could not be made durable.
// A refused one is no fault: the job was cancelled while the attempt ran.
// Otherwise the task is still open in the store, under the same lease, and runs
// again.
func (q *Queue) unsettled(lease *Lease, err error) {
	if errors.Is(err, record.ErrFenced) {
		lease.lane.finish(lease)
		q.observe(lease, nil, jobhost.OutcomeCancelled, jobhost.Cancelled)
		return
	}
	q.cfg.Logger.Error("settlement is not durable; the task will run again",
		logkey.Job, lease.Job.ID, logkey.Task, lease.Index, logkey.Error, err)
	lease.lane.putBack(lease)
}

// retryStore is how long a task waits that met a store which didn't work.
const retryStore = time.Second

// putBack makes a leased task wait again, under the same lease; false = it was
// cancelled meanwhile.
func (l *lane) putBack(lease *Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveGroupLocked(lease)
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
