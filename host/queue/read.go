package queue

import (
	"context"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// Job returns a job with its tasks and error records.
func (q *Queue) Job(ctx context.Context, id string) (jobhost.Job, error) {
	job, _, err := q.look(ctx, id)
	return job, err
}

// look returns a job as people are told of it, and as the store has it.
func (q *Queue) look(ctx context.Context, id string) (job jobhost.Job, record JobRecord, err error) {
	if record, err = q.record(ctx, id); err != nil {
		return job, record, err
	}
	job = q.describe(record)
	if job.State == jobhost.Ready {
		// It may have been settled between the read and the look at what runs
		// here; then this read sees it.
		if record, err = q.record(ctx, id); err != nil {
			return jobhost.Job{}, record, err
		}
		job = q.describe(record)
	}
	job.Failures = record.Failures
	return job, record, nil
}

func (q *Queue) record(ctx context.Context, id string) (JobRecord, error) {
	if err := jobhost.CheckID(id); err != nil {
		return JobRecord{}, err
	}
	return q.store.Job(ctx, id)
}

// Logs returns what the attempts of a job logged, oldest first.
func (q *Queue) Logs(ctx context.Context, id string) ([]jobhost.AttemptLog, error) {
	record, err := q.record(ctx, id)
	if err != nil {
		return nil, err
	}
	logs, err := q.store.Logs(ctx, record.Key)
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
// what people are told.
func (q *Queue) describe(record JobRecord) jobhost.Job {
	job := jobhost.Job{
		ID:          record.ID,
		Worker:      record.Worker,
		Priority:    record.Priority,
		Entry:       record.Entry,
		ContentType: record.ContentType,
		Labels:      record.Labels,

		ConcurrencyKey: record.ConcurrencyKey,
		UniqueKey:      record.UniqueKey,
		Deadline:       timeOrNil(record.Deadline),
		UniqueUntil:    timeOrNil(record.UniqueUntil),
		Callback:       callbackOrNil(record.Callback),

		PayloadSize: payloadSize(&record),
		MaxAttempts: record.MaxAttempts,
		Timeout:     jobhost.Duration(record.Timeout),
		Retention:   jobhost.Duration(record.Retention),
		CreatedAt:   record.CreatedAt.Time(),
		EndedAt:     timeOrNil(record.EndedAt),
		Parent:      record.parentID(),
		Workflow:    record.Origin.WorkflowID(),
		Step:        record.Origin.StepName(),
		TaskCount:   record.JobSpec.Tasks,
		Tasks:       make([]jobhost.Task, len(record.Tasks)),
	}
	l := q.lanes.of(record.Worker)
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	var counts jobhost.Counts
	now := MillisOf(q.clock.now())
	id := record.Group()
	for i := range record.Tasks {
		job.Tasks[i] = describeTask(&record.Tasks[i], l, id, now)
		counts[job.Tasks[i].State]++
	}
	job.State = jobhost.JobState(&counts)
	return job
}

func payloadSize(record *JobRecord) int {
	if record.Ref != "" {
		return int(sizeOf(record.Ref))
	}
	return record.PayloadSize
}

// describeTask tells of one task; the lane's lock is held, if there is a lane.
func describeTask(record *TaskRecord, l *lane, id Group, now Millis) jobhost.Task {
	task := jobhost.Task{
		Index:      record.Index,
		Attempt:    record.Attempt,
		Course:     courseOf(record.Token, false),
		ReadyAt:    record.ReadyAt.Time(),
		StartedAt:  timeOrNil(record.StartedAt),
		EndedAt:    timeOrNil(record.EndedAt),
		ResultSize: record.ResultSize,
		Fuel:       record.Fuel,
	}
	switch record.Status {
	case Succeeded:
		task.State = jobhost.Succeeded
	case Dead:
		task.State = jobhost.Dead
	case Cancelled:
		task.State = jobhost.Cancelled
	default:
		task.State = openState(record.ReadyAt, record.Attempt, l, id, now)
	}
	if l == nil || record.Status != Open {
		return task
	}
	if at, moved := l.moved[record.Key]; moved {
		task.ReadyAt = at.Time()
		task.State = openState(at, record.Attempt, l, id, now)
	}
	if a, aside := l.aside[record.Key]; aside && int64(a.token) == record.Token {
		task.State = jobhost.Held
	}
	if lease := l.running[record.Key]; lease != nil {
		task.State = jobhost.Running
		task.Attempt++ // the one under way
		task.Course = courseOf(int64(lease.entry.token), true)
		started := lease.TakenAt.UTC()
		task.StartedAt = &started
		task.Done, task.Total = lease.done.Load(), lease.total.Load()
	}
	return task
}

// openState is the state of an open task that doesn't run. Before their time
// tasks of a paused worker are scheduled, as ever.
func openState(readyAt Millis, attempt int, l *lane, id Group, now Millis) jobhost.State {
	switch {
	case l == nil || l.parked.Load():
		return jobhost.Held // no such worker is loaded
	case readyAt <= now && (l.holdLocked() != notHeld || id != 0 && l.groups != nil && l.groups.isFull(id)):
		return jobhost.Held
	case readyAt <= now:
		return jobhost.Ready
	case attempt > 0:
		return jobhost.Retrying
	}
	return jobhost.Scheduled
}

// parentID is the id of the job that submitted it, or "".
func (r *JobRecord) parentID() string {
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

func timeOrNil(m Millis) *time.Time {
	if m == 0 {
		return nil
	}
	t := m.Time()
	return &t
}
