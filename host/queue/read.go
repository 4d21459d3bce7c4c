package queue

import (
	"context"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Job returns a job with its tasks and error records.
func (q *Queue) Job(ctx context.Context, id string) (jobhost.Job, error) {
	job, _, err := q.look(ctx, id)
	return job, err
}

// look returns a job as callers see it, and as the store has it.
func (q *Queue) look(ctx context.Context, id string) (job jobhost.Job, stored record.JobRecord, err error) {
	if stored, err = q.record(ctx, id); err != nil {
		return job, stored, err
	}
	job = q.describe(stored)
	if job.State == jobhost.Ready {
		// It may have been settled between the read and the look at what runs
		// here; then this read sees it.
		if stored, err = q.record(ctx, id); err != nil {
			return jobhost.Job{}, stored, err
		}
		job = q.describe(stored)
	}
	job.Failures = stored.Failures
	return job, stored, nil
}

func (q *Queue) record(ctx context.Context, id string) (record.JobRecord, error) {
	if err := jobhost.CheckID(id); err != nil {
		return record.JobRecord{}, err
	}
	return q.store.Job(ctx, id)
}

// Logs returns what the attempts of a job logged, oldest first.
func (q *Queue) Logs(ctx context.Context, id string) ([]jobhost.AttemptLog, error) {
	stored, err := q.record(ctx, id)
	if err != nil {
		return nil, err
	}
	logs, err := q.store.Logs(ctx, stored.Key)
	if err != nil {
		return nil, err
	}
	all := make([]jobhost.AttemptLog, len(logs))
	for i, log := range logs {
		all[i] = jobhost.AttemptLog{Task: log.Task, Attempt: log.Attempt, Dropped: log.Dropped, Lines: []string{}}
		if text := strings.TrimSuffix(string(log.Text), "\n"); text != "" {
			all[i].Lines = strings.Split(text, "\n")
		}
	}
	return all, nil
}

// describe turns what the store knows, and what this process does now, into
// what callers see.
func (q *Queue) describe(stored record.JobRecord) jobhost.Job {
	job := jobhost.Job{
		ID:          stored.ID,
		Worker:      stored.Worker,
		Priority:    stored.Priority,
		Entry:       stored.Entry,
		ContentType: stored.ContentType,
		Labels:      stored.Labels,

		ConcurrencyKey: stored.ConcurrencyKey,
		UniqueKey:      stored.UniqueKey,
		Deadline:       timeOrNil(stored.Deadline),
		UniqueUntil:    timeOrNil(stored.UniqueUntil),
		Callback:       callbackOrNil(stored.Callback),

		PayloadSize: payloadSize(&stored),
		MaxAttempts: stored.MaxAttempts,
		Timeout:     jobhost.Duration(stored.Timeout),
		Retention:   jobhost.Duration(stored.Retention),
		CreatedAt:   stored.CreatedAt.Time(),
		EndedAt:     timeOrNil(stored.EndedAt),
		Parent:      parentID(&stored),
		Workflow:    stored.Origin.WorkflowID(),
		Step:        stored.Origin.StepName(),
		TaskCount:   stored.JobSpec.Tasks,
		Tasks:       make([]jobhost.Task, len(stored.Tasks)),
	}
	l := q.lanes.of(stored.Worker)
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	var counts jobhost.Counts
	now := record.MillisOf(q.clock.now())
	id := stored.Group()
	for i := range stored.Tasks {
		job.Tasks[i] = describeTask(&stored.Tasks[i], l, id, now)
		counts[job.Tasks[i].State]++
	}
	job.State = jobhost.JobState(&counts)
	return job
}

func payloadSize(stored *record.JobRecord) int {
	if stored.Ref != "" {
		return int(stored.JobSpec.PayloadSize())
	}
	return stored.PayloadSize
}

// describeTask describes one task; the lane's lock is held, if there is a lane.
func describeTask(stored *record.TaskRecord, l *lane, id record.Group, now record.Millis) jobhost.Task {
	task := jobhost.Task{
		Index:      stored.Index,
		Attempt:    stored.Attempt,
		Course:     revisionOf(stored.Token, false),
		ReadyAt:    stored.ReadyAt.Time(),
		StartedAt:  timeOrNil(stored.StartedAt),
		EndedAt:    timeOrNil(stored.EndedAt),
		ResultSize: stored.ResultSize,
		Fuel:       stored.Fuel,
	}
	switch stored.Status {
	case record.Succeeded:
		task.State = jobhost.Succeeded
	case record.Dead:
		task.State = jobhost.Dead
	case record.Cancelled:
		task.State = jobhost.Cancelled
	default:
		task.State = openState(stored.ReadyAt, stored.Attempt, l, id, now)
	}
	if l == nil || stored.Status != record.Open {
		return task
	}
	if at, moved := l.order.ReadyAt(stored.Key); moved {
		task.ReadyAt = at.Time()
		task.State = openState(at, stored.Attempt, l, id, now)
	}
	if w, aside := l.order.Aside(stored.Key); aside && int64(w.Token) == stored.Token {
		task.State = jobhost.Held
	}
	if lease := l.running[stored.Key]; lease != nil {
		task.State = jobhost.Running
		task.Attempt++ // the one under way
		task.Course = revisionOf(int64(lease.entry.Token), true)
		started := lease.TakenAt.UTC()
		task.StartedAt = &started
		task.Done, task.Total = lease.done.Load(), lease.total.Load()
	}
	return task
}

// openState is the state of an open task that doesn't run. Before their time
// tasks of a paused worker are scheduled, as usual.
func openState(readyAt record.Millis, attempt int, l *lane, id record.Group, now record.Millis) jobhost.State {
	switch {
	case l == nil || l.parked.Load():
		return jobhost.Held // no such worker is loaded
	case readyAt <= now && (l.holdLocked() != notHeld || l.order.Full(id)):
		return jobhost.Held
	case readyAt <= now:
		return jobhost.Ready
	case attempt > 0:
		return jobhost.Retrying
	}
	return jobhost.Scheduled
}

// parentID is the id of the job that submitted it, or "".
func parentID(r *record.JobRecord) string {
	if r.Parent == nil {
		return ""
	}
	return r.Parent.ID
}

func callbackOrNil(c jobhost.Callback) *jobhost.Callback {
	if c == (jobhost.Callback{}) {
		return nil
	}
	return &c
}

func timeOrNil(m record.Millis) *time.Time {
	if m == 0 {
		return nil
	}
	t := m.Time()
	return &t
}
