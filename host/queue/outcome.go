package queue

import (
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
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

// decide decides what the outcome makes of the task.
func (q *Queue) decide(lease *Lease, report Report) (*record.Settle, jobhost.State) {
	now := lease.endedAt
	op := &record.Settle{
		Key:        lease.Key,
		Token:      lease.Token,
		Number:     lease.Number(),
		Attempt:    lease.Attempt,
		Patient:    true,
		Suspect:    lease.doubted,
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
	op.Suspect = op.Suspect || lease.crashed
	if !f.Retryable || op.Attempt >= lease.Job.MaxAttempts {
		lease.lane.makeDead(op, lease.Job, now)
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

// makeDead lets a settlement make its task a dead letter.
func (l *lane) makeDead(op *record.Settle, job *record.JobSpec, now time.Time) {
	op.Status = record.Dead
	op.ExpiresAt = l.expires(job, jobhost.Dead, now)
	op.MaxDead = l.worker.Load().Retention.MaxEntries
}

// inapplicable is the record of an attempt whose effects were refused; nil = that is
// not what happened.
func inapplicable(err error) *jobhost.Failure {
	f := &jobhost.Failure{
		Category: jobhost.CategoryResource, Severity: jobhost.SeverityError, Retryable: true,
		Message: fmt.Sprintf("the attempt succeeded, but its effects can't be applied: %v", err),
	}
	switch jobhost.CodeOf(err) {
	case jobhost.CodeConflict:
		f.Code, f.Severity = jobhost.FailConflict, jobhost.SeverityWarning
	case jobhost.CodeExhausted:
		f.Code = jobhost.FailLimit
	default:
		return nil
	}
	return f
}

// forsake gives up children of which it is unknown whether they are durable, so
// their payloads stay.
func (a *Asked) forsake() {
	for _, child := range a.Children {
		child.lane.q.withdraw(child.Job, child.lane, false)
	}
}
