package queue

import (
	"context"
	"log/slog"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// publisher says what happened, after it is durable: to the receiver of events, to
// the metrics and to the log.
type publisher struct {
	cfg   *Config
	clock *clock
}

// attempt publishes something that happened to a leased task.
func (p publisher) attempt(kind jobhost.EventKind, lease *Lease, state jobhost.State) {
	p.cfg.Publish(jobhost.Event{
		Kind: kind, Time: p.clock.now(), Job: lease.Job.ID, Worker: lease.Job.Worker,
		Task: lease.Index, Attempt: lease.Number(), State: state, Course: revisionOf(lease.Token, true),
		Workflow: lease.Job.Origin.WorkflowID(), Step: lease.Job.Origin.StepName(),
	})
}

// revisionOf is the revision of a task under a lease, or after it: every change of where it stands raises it.
func revisionOf(token int64, running bool) int64 {
	if running {
		return 2*token + 1
	}
	return 2 * token
}

var settledKinds = map[jobhost.OutcomeKind]jobhost.EventKind{
	jobhost.OutcomeSucceeded: jobhost.EventSucceeded,
	jobhost.OutcomeSnoozed:   jobhost.EventSnoozed,
	jobhost.OutcomeReturned:  jobhost.EventReturned,
}

// settled publishes a settlement that is durable.
func (p publisher) settled(lease *Lease, kind jobhost.OutcomeKind, op *record.Settle, state jobhost.State, result record.OpResult) {
	event := jobhost.Event{
		Kind: settledKinds[kind], Time: p.clock.now(), Job: lease.Job.ID, Worker: lease.Job.Worker,
		Task: lease.Index, Attempt: lease.Number(), State: state, Failure: op.Failure,
		Course: revisionOf(lease.Token+1, false), Workflow: lease.Job.Origin.WorkflowID(), Step: lease.Job.Origin.StepName(),
	}
	switch {
	case kind != jobhost.OutcomeFailed:
	case state == jobhost.Dead:
		event.Kind = jobhost.EventDead
	default:
		event.Kind = jobhost.EventRetrying
	}
	p.cfg.Publish(event)
	p.ended(lease.Job.ID, lease.Job.Worker, lease.Job.Origin, result)
	p.observe(lease, op, kind, state)
}

// ended publishes that a job ended, if it did.
func (p publisher) ended(id, worker string, origin *record.Origin, result record.OpResult) {
	if !result.JobEnded {
		return
	}
	final := countsOf(result.Final)
	p.cfg.Publish(jobhost.Event{
		Kind: jobhost.EventEnded, Time: p.clock.now(), Job: id, Worker: worker, State: jobhost.JobState(&final),
		Workflow: origin.WorkflowID(), Step: origin.StepName(),
	})
}

// observe tells the metrics and the log of a lease that ended durably; op is nil
// when nothing of its attempt was kept.
func (p publisher) observe(lease *Lease, op *record.Settle, kind jobhost.OutcomeKind, state jobhost.State) {
	if log := p.cfg.Logger; log.Enabled(context.Background(), slog.LevelDebug) {
		log.Debug("attempt settled", logkey.Job, lease.Job.ID, logkey.Worker, lease.Job.Worker,
			logkey.Task, lease.Index, logkey.Attempt, lease.Number(), logkey.Outcome, kind, logkey.State, state)
	}
	if op == nil {
		op = &record.Settle{}
	}
	p.cfg.Settled(Settlement{
		Worker:     lease.lane.name,
		Failure:    op.Failure,
		LogDropped: op.LogDropped,
		Outcome:    kind,
		State:      state,
		Waited:     max(lease.TakenAt.Sub(lease.ReadyAt), 0),
		Ran:        lease.endedAt.Sub(lease.TakenAt),
	})
}
