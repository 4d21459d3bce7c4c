package queue

import "github.com/jobhost/jobhost"

// publish tells of something that happened to a leased task.
func (q *Queue) publish(kind jobhost.EventKind, lease *Lease, state jobhost.State) {
	q.cfg.Publish(jobhost.Event{
		Kind: kind, Time: q.clock.now(), Job: lease.Job.ID, Worker: lease.Job.Worker,
		Task: lease.Index, Attempt: lease.Number(), State: state,
	})
}

var settledKinds = map[jobhost.OutcomeKind]jobhost.EventKind{
	jobhost.OutcomeSucceeded: jobhost.EventSucceeded,
	jobhost.OutcomeSnoozed:   jobhost.EventSnoozed,
	jobhost.OutcomeReturned:  jobhost.EventReturned,
}

// publishSettled tells of a settlement that is durable.
func (q *Queue) publishSettled(lease *Lease, kind jobhost.OutcomeKind, op *Settle, state jobhost.State, result OpResult) {
	event := jobhost.Event{
		Kind: settledKinds[kind], Time: q.clock.now(), Job: lease.Job.ID, Worker: lease.Job.Worker,
		Task: lease.Index, Attempt: lease.Number(), State: state, Failure: op.Failure,
	}
	switch state {
	case jobhost.Retrying:
		event.Kind = jobhost.EventRetrying
	case jobhost.Dead:
		event.Kind = jobhost.EventDead
	}
	q.cfg.Publish(event)
	q.publishEnded(lease.Job.ID, lease.Job.Worker, result)
	q.observe(lease, op, kind, state)
}

// publishEnded tells that a job ended, if it did.
func (q *Queue) publishEnded(id, worker string, result OpResult) {
	if !result.JobEnded {
		return
	}
	final := jobhost.Counts{
		jobhost.Succeeded: result.Final[Succeeded],
		jobhost.Dead:      result.Final[Dead],
		jobhost.Cancelled: result.Final[Cancelled],
	}
	q.cfg.Publish(jobhost.Event{
		Kind: jobhost.EventEnded, Time: q.clock.now(), Job: id, Worker: worker, State: jobhost.JobState(&final),
	})
}

// observe tells the metrics of an attempt that ended; op is nil when nothing of
// it was kept.
func (q *Queue) observe(lease *Lease, op *Settle, kind jobhost.OutcomeKind, state jobhost.State) {
	if op == nil {
		op = &Settle{}
	}
	q.cfg.Settled(Settlement{
		Worker:     lease.lane.worker.Name,
		Failure:    op.Failure,
		LogDropped: op.LogDropped,
		Outcome:    kind,
		State:      state,
		Waited:     max(lease.TakenAt.Sub(lease.ReadyAt), 0),
		Ran:        lease.endedAt.Sub(lease.TakenAt),
	})
}
