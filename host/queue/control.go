package queue

import (
	"context"
	"fmt"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Cancel ends the open tasks of a job. It is final once it returns: an attempt
// that still runs is notified, and stopped by the pool after a grace period;
// whatever it does until then, its settlement is refused.
func (q *Queue) Cancel(ctx context.Context, id string) (jobhost.Job, error) {
	return q.cancel(ctx, id, nil)
}

// CancelTask is Cancel for one task of a job.
func (q *Queue) CancelTask(ctx context.Context, id string, task int) (jobhost.Job, error) {
	return q.cancel(ctx, id, []int{task})
}

// cancel cancels the tasks of those indexes; nil = all.
func (q *Queue) cancel(ctx context.Context, id string, tasks []int) (jobhost.Job, error) {
	stored, err := q.record(ctx, id)
	if err != nil {
		return jobhost.Job{}, fmt.Errorf("cancel: %w", err)
	}
	now := q.clock.now()
	op := &record.Cancel{
		ID: id, Tasks: tasks, At: record.MillisOf(now),
		ExpiresAt: q.lanes.of(stored.Worker).expires(&stored.JobSpec, jobhost.Cancelled, now),
		Then:      q.then(&stored.JobSpec, nil),
	}
	if stored.Origin != nil {
		op.Transition = q.cfg.Workflows.Cancelled(&stored.JobSpec, op.At)
	}
	err = q.commitOne(ctx, op, func(result record.OpResult) {
		q.cancelled(id, stored.Origin, result)
		if result.Err == nil {
			q.transitioned(op.Transition, result)
		}
	})
	if err != nil {
		return jobhost.Job{}, fmt.Errorf("cancel: %w", err)
	}
	return q.Job(ctx, id)
}

// cancelled takes the tasks that were cancelled out of their lane.
func (q *Queue) cancelled(id string, origin *record.Origin, result record.OpResult) {
	if result.Err != nil {
		return
	}
	if l := q.lanes.of(result.Worker); l != nil {
		for _, task := range result.Tasks {
			l.cancelTask(task)
		}
	}
	for _, task := range result.Tasks {
		q.cfg.Publish(jobhost.Event{
			Kind: jobhost.EventCancelled, Time: q.clock.now(), Job: id, Worker: result.Worker,
			Task: task.Index, State: jobhost.Cancelled, Course: revisionOf(task.Token+1, false),
			Workflow: origin.WorkflowID(), Step: origin.StepName(),
		})
	}
	q.events.ended(id, result.Worker, origin, result)
	q.follow(result)
}

func (l *lane) cancelTask(task record.Changed) {
	l.mu.Lock()
	l.bodies.forget(task.Key)
	lease := l.running[task.Key]
	switch w, expiring := l.expiring[task.Key]; {
	case expiring && int64(w.Token) == task.Token: // it was taken out already
		delete(l.expiring, task.Key)
	case lease != nil:
		delete(l.misses, task.Key)
		delete(l.running, task.Key) // the attempt may go on for a while, but it is no longer the task's
	default:
		l.removeLocked(order.Entry{
			Key: task.Key, ReadyAt: task.ReadyAt, Token: int32(task.Token), Level: int8(task.Level), Tried: task.Attempt > 0,
		}, task.Group)
	}
	l.mu.Unlock()
	if lease != nil {
		lease.cancel()
	}
}

// Retry makes the dead and cancelled tasks of a job ready again, with all
// their attempts before them. They need room in the queue like new ones:
// exhausted when there is none. Tasks that end between the look at the job and
// the commit come back too, without room.
func (q *Queue) Retry(ctx context.Context, id string) (jobhost.Job, error) {
	return q.retry(ctx, id, nil)
}

// RetryTask is Retry for one task of a job.
func (q *Queue) RetryTask(ctx context.Context, id string, task int) (jobhost.Job, error) {
	return q.retry(ctx, id, []int{task})
}

// retry revives the tasks of those indexes; nil = all.
func (q *Queue) retry(ctx context.Context, id string, tasks []int) (jobhost.Job, error) {
	if q.closed.Load() {
		return jobhost.Job{}, errClosed
	}
	stored, err := q.record(ctx, id)
	if err != nil {
		return jobhost.Job{}, fmt.Errorf("retry: %w", err)
	}
	l, room := q.lanes.of(stored.Worker), revivable(&stored, tasks)
	if l != nil && room > 0 {
		if err := l.reserve(room); err != nil {
			return jobhost.Job{}, fmt.Errorf("retry: %w", err)
		}
	}
	op := &record.Revive{ID: id, Tasks: tasks, At: record.MillisOf(q.clock.now())}
	if stored.Origin != nil {
		op.Transition = q.cfg.Workflows.Revived(&stored.JobSpec, op.At)
	}
	err = q.commitOne(ctx, op, func(result record.OpResult) {
		q.revived(&stored.JobSpec, l, room, result)
		if result.Err == nil {
			q.follow(result)
			q.transitioned(op.Transition, result)
		}
	})
	if err != nil {
		return jobhost.Job{}, fmt.Errorf("retry: %w", err)
	}
	return q.Job(ctx, id)
}

// revivable counts the tasks of a job of those indexes that a retry opens again; nil = all.
func revivable(r *record.JobRecord, tasks []int) int {
	n := 0
	for i := range r.Tasks {
		if status := r.Tasks[i].Status; (status == record.Dead || status == record.Cancelled) &&
			(tasks == nil || slices.Contains(tasks, i)) {
			n++
		}
	}
	return n
}

// revived puts the tasks that were opened again into their lane, if there is
// one. reserved is the lane in which room was reserved; nil = there was none yet.
func (q *Queue) revived(job *record.JobSpec, reserved *lane, room int, result record.OpResult) {
	if reserved != nil {
		reserved.vacate(room)
	}
	for _, task := range result.Tasks {
		q.cfg.Publish(jobhost.Event{
			Kind: jobhost.EventRetrying, Time: q.clock.now(), Job: job.ID, Worker: result.Worker,
			Task: task.Index, State: jobhost.Ready, Course: revisionOf(task.Token, false),
			Workflow: job.Origin.WorkflowID(), Step: job.Origin.StepName(),
		})
	}
	l := q.lanes.of(result.Worker)
	if l == nil {
		return // held: no such worker
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, task := range result.Tasks {
		l.order.Push(order.Entry{
			Key: task.Key, ReadyAt: task.ReadyAt, Token: int32(task.Token), Index: int16(task.Index), Level: int8(task.Level),
		}, order.Traits{Group: task.Group}) // a deadline that it had is over
	}
	l.pumpLocked()
}

// Delete removes a job that has ended.
func (q *Queue) Delete(ctx context.Context, id string) error {
	if err := q.commitOne(ctx, &record.Delete{ID: id}, q.tellGone); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}
