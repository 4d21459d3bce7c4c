package queue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
)

// Cancel ends the open tasks of a job. It is final once it returns: an attempt
// that still runs is told, and stopped after a grace by whoever runs it, but
// whatever it does, its settlement is refused.
func (q *Queue) Cancel(ctx context.Context, id string) (jobhost.Job, error) {
	if err := q.commitOne(ctx, &Cancel{ID: id, At: MillisOf(q.clock.now())}, q.cancelled); err != nil {
		return jobhost.Job{}, fmt.Errorf("cancel: %w", err)
	}
	return q.Job(ctx, id)
}

// cancelled takes the tasks that were cancelled out of their lane.
func (q *Queue) cancelled(op Op, result OpResult) {
	id := op.(*Cancel).ID
	if l := q.lanes[result.Worker]; l != nil {
		for _, task := range result.Tasks {
			l.cancelTask(task)
		}
	}
	for _, task := range result.Tasks {
		q.cfg.Publish(jobhost.Event{
			Kind: jobhost.EventCancelled, Time: q.clock.now(), Job: id, Worker: result.Worker,
			Task: task.Index, State: jobhost.Cancelled,
		})
	}
	q.publishEnded(id, result.Worker, result)
}

func (l *lane) cancelTask(task Changed) {
	l.mu.Lock()
	l.bodies.forget(task.Key)
	lease := l.running[task.Key]
	// A lease of an earlier token is that of an attempt which was cancelled before.
	if lease != nil && int64(lease.entry.token) != task.Token {
		lease = nil
	}
	if lease == nil {
		l.removeLocked(entry{
			key: task.Key, readyAt: task.ReadyAt, token: int32(task.Token), level: int8(task.Level), tried: task.Attempt > 0,
		})
	}
	l.mu.Unlock()
	if lease != nil {
		lease.cancel()
	}
}

// Retry makes the dead and cancelled tasks of a job ready again, with all
// their attempts before them.
func (q *Queue) Retry(ctx context.Context, id string) (jobhost.Job, error) {
	if q.closed.Load() {
		return jobhost.Job{}, errClosed
	}
	if err := q.commitOne(ctx, &Revive{ID: id, At: MillisOf(q.clock.now())}, q.revived); err != nil {
		return jobhost.Job{}, fmt.Errorf("retry: %w", err)
	}
	return q.Job(ctx, id)
}

// revived puts the tasks that were opened again into their lane.
func (q *Queue) revived(op Op, result OpResult) {
	for _, task := range result.Tasks {
		q.cfg.Publish(jobhost.Event{
			Kind: jobhost.EventRetrying, Time: q.clock.now(), Job: op.(*Revive).ID, Worker: result.Worker,
			Task: task.Index, State: jobhost.Ready,
		})
	}
	l := q.lanes[result.Worker]
	if l == nil {
		return // held: no such worker
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, task := range result.Tasks {
		l.pushLocked(entry{
			key: task.Key, readyAt: task.ReadyAt, token: int32(task.Token), index: int16(task.Index), level: int8(task.Level),
		})
	}
	l.pumpLocked()
}

// Delete removes a job that has ended.
func (q *Queue) Delete(ctx context.Context, id string) error {
	if err := q.commitOne(ctx, &Delete{ID: id}, func(Op, OpResult) {}); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// commitOne commits one operation and waits for it. applied runs on the
// store's goroutine, in the order of the commits, when it was applied.
func (q *Queue) commitOne(ctx context.Context, op Op, applied func(Op, OpResult)) error {
	answer := make(chan error, 1)
	q.inflight.add()
	q.store.Commit([]Op{op}, func(results []OpResult, err error) {
		defer q.inflight.done()
		result := OpResult{Err: err}
		if err == nil {
			result = results[0]
		}
		if result.Err == nil {
			applied(op, result)
		}
		answer <- result.Err
	})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
