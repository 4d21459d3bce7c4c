package queue

import (
	"context"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Workflows decides what becomes of workflows when jobs of their steps change. Its
// methods must not block; nil = nothing becomes of them.
type Workflows interface {
	// Settled is asked for each attempt of a step's job, before its settlement.
	Settled(job *record.JobSpec, op *record.Settle) record.Transition
	// Cancelled and Revived are asked before tasks of a step's job are cancelled or opened again.
	Cancelled(job *record.JobSpec, at record.Millis) record.Transition
	Revived(job *record.JobSpec, at record.Millis) record.Transition
}

// Advance commits a transition and returns when it is durable.
func (q *Queue) Advance(ctx context.Context, t record.Transition) error {
	return q.commitOne(ctx, &record.Advance{Transition: t}, func(result record.OpResult) {
		if result.Err == nil {
			q.follow(result)
			q.transitioned(t, result)
		}
	})
}

// transitioned applies the consequences of a transition that is durable. The caller holds lanes.opening since before
// the commit.
func (q *Queue) transitioned(t record.Transition, result record.OpResult) {
	if t == nil {
		return
	}
	q.dropped(result)
	t.Applied()
}

// dropped takes jobs out of their lanes that were cancelled by the way.
func (q *Queue) dropped(result record.OpResult) {
	for i := range result.Dropped {
		d := &result.Dropped[i]
		q.cancelled(d.ID, &d.Origin, record.OpResult{Worker: d.Worker, Tasks: d.Tasks, JobEnded: d.JobEnded, Final: d.Final})
	}
}

// NewJob makes a job of a step: the spec with all defaults of its worker. It needs
// no room in the queue.
func (q *Queue) NewJob(spec *jobhost.Spec) *record.JobSpec {
	return q.fill(q.settingsOf(spec.Worker), spec)
}

// RetryOf returns how a worker's failed attempts are made again.
func (q *Queue) RetryOf(worker string) jobhost.RetryPolicy { return q.settingsOf(worker).Retry }

// noWorkflows is a [Workflows] of a host that has none.
type noWorkflows struct{}

func (noWorkflows) Settled(*record.JobSpec, *record.Settle) record.Transition { return nil }

func (noWorkflows) Cancelled(*record.JobSpec, record.Millis) record.Transition { return nil }

func (noWorkflows) Revived(*record.JobSpec, record.Millis) record.Transition { return nil }

// RemoveWorkflow removes a workflow that has ended, with its jobs, a piece at a time: others go on between.
func (q *Queue) RemoveWorkflow(ctx context.Context, id string) error {
	for began := false; ; began = true {
		op := &record.DeleteWorkflow{ID: id, At: record.MillisOf(q.clock.now()), Limit: tidyTasks}
		var more bool
		err := q.commitOne(ctx, op, func(r record.OpResult) {
			q.dropped(r)
			q.tellGone(r)
			more = r.Next != 0
		})
		if began && jobhost.CodeOf(err) == jobhost.CodeNotFound {
			return nil // the rest has been tidied away
		}
		if err != nil || !more {
			return err
		}
	}
}
