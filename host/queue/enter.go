package queue

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
)

// submitted runs when the fate of a submit is known.
func (q *Queue) submitted(l *lane, job *record.JobSpec, result record.OpResult) jobhost.Submitted {
	q.objects.releaseJob(job, result)
	if result.Err != nil || result.Existing {
		l.vacate(job.Tasks)
		if result.Err != nil {
			return jobhost.Submitted{Err: fmt.Errorf("submit: %w", result.Err)}
		}
		return jobhost.Submitted{Receipt: jobhost.Receipt{ID: cmp.Or(result.ID, job.ID), Deduplicated: true}}
	}
	job.Key = result.Key
	state := q.enter(l, job, job.Tasks)
	return jobhost.Submitted{Receipt: jobhost.Receipt{ID: job.ID, State: state}}
}

// enter puts a job that is durable into its lane, where there is room for so
// many tasks; the lane is nil if the worker is not known yet.
func (q *Queue) enter(l *lane, job *record.JobSpec, reserved int) jobhost.State {
	state := jobhost.Ready
	if job.ReadyAt > job.CreatedAt {
		state = jobhost.Scheduled
	}
	q.cfg.Publish(jobhost.Event{
		Kind: jobhost.EventSubmitted, Time: q.clock.now(), Job: job.ID, Worker: job.Worker, State: state,
		Workflow: job.Origin.WorkflowID(), Step: job.Origin.StepName(),
	})
	if l == nil {
		return state
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending -= reserved
	x := order.Traits{Group: job.Group(), Deadline: job.Deadline}
	bare := job.WithoutItems()
	for i := range job.Tasks {
		e := order.Entry{Key: job.Key + record.Key(i), ReadyAt: job.ReadyAt, Index: int16(i), Level: int8(job.Priority.Level())}
		if l.bodies.keepsNew() && l.soonLocked(e.ReadyAt) {
			l.keepNewLocked(e, bare, job.Item(i))
		}
		l.order.Push(e, x)
	}
	l.pumpLocked()
	return state
}

// keepNewLocked keeps the body of a task that was just submitted, if there is room.
// job is the task's without items.
func (l *lane) keepNewLocked(e order.Entry, job *record.JobSpec, item []byte) {
	b := &record.Body{Key: e.Key, Index: int(e.Index), Deadline: job.Deadline, Payload: item, Job: job}
	if l.bodies.keep(b) {
		// Items may be parts of one text, all of which a single one would keep.
		b.Payload = bytes.Clone(item)
	}
}
