package hosttest

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// fakeBackoff is the delay between attempts.
const fakeBackoff = time.Millisecond

// scheduleLocked runs a task when its time has come.
func (f *Fake) scheduleLocked(job *fakeJob, i int) {
	t := &job.tasks[i]
	t.run++
	if wait := time.Until(t.ReadyAt); wait > 0 {
		f.laterLocked(job, i, wait, f.runLocked)
		return
	}
	f.runLocked(job, i)
}

// laterLocked calls do after a while, unless the task has changed by then.
func (f *Fake) laterLocked(job *fakeJob, i int, wait time.Duration, do func(*fakeJob, int)) {
	run := job.tasks[i].run
	time.AfterFunc(wait, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if job.tasks[i].run == run {
			do(job, i)
		}
	})
}

// runLocked makes an attempt.
func (f *Fake) runLocked(job *fakeJob, i int) {
	t, now := &job.tasks[i], time.Now().UTC()
	t.run++
	if f.mode != jobhost.WorkerRunning {
		t.State = jobhost.Held
		return
	}
	t.State, t.StartedAt = jobhost.Running, &now
	t.Attempt++
	t.Course++
	f.tellTaskLocked(job, i, jobhost.EventStarted, nil)
	payload := job.payload(i)
	switch job.spec.Entry {
	case "", "echo":
		f.succeedLocked(job, i, payload)
	case "empty":
		f.succeedLocked(job, i, nil)
	case "log_echo":
		job.logs = append(job.logs, jobhost.AttemptLog{Task: i, Attempt: t.Attempt, Lines: []string{"info " + string(payload)}})
		f.succeedLocked(job, i, nil)
	case "fail_retry":
		f.failLocked(job, i, jobhost.FailWorker, string(payload), true)
	case "fail_permanent":
		f.failLocked(job, i, jobhost.FailWorker, string(payload), false)
	case "trap":
		f.failLocked(job, i, jobhost.FailTrap, "unreachable", true)
	case "snooze":
		f.snoozeLocked(job, i)
	case "spin":
		f.laterLocked(job, i, job.spec.Timeout, func(job *fakeJob, i int) {
			f.failLocked(job, i, jobhost.FailTimeout, "out of time", true)
		})
	default:
		f.failLocked(job, i, jobhost.FailNoEntry, "no such entry", false)
	}
}

// turn changes the course of a task by anything but the begin of an attempt.
func (t *fakeTask) turn() { t.Course += 2 - t.Course%2 }

func (f *Fake) succeedLocked(job *fakeJob, i int, result []byte) {
	job.tasks[i].result = result
	job.tasks[i].ResultSize = len(result)
	f.endLocked(job, i, jobhost.Succeeded, jobhost.EventSucceeded, nil)
}

func (f *Fake) snoozeLocked(job *fakeJob, i int) {
	t := &job.tasks[i]
	d, err := jobhost.ParseDuration(string(job.payload(i)))
	if err != nil {
		f.failLocked(job, i, "bad_snooze", err.Error(), true)
		return
	}
	t.Attempt--
	t.turn()
	t.State, t.ReadyAt = jobhost.Scheduled, time.Now().Add(time.Duration(d)).UTC()
	f.tellTaskLocked(job, i, jobhost.EventSnoozed, nil)
	f.scheduleLocked(job, i)
}

func (f *Fake) failLocked(job *fakeJob, i int, code, message string, retryable bool) {
	t := &job.tasks[i]
	failure := jobhost.Failure{
		Code: code, Category: jobhost.CategoryUnknown, Severity: jobhost.SeverityError, Message: message,
		Retryable: retryable, Task: i, Attempt: t.Attempt, StartedAt: *t.StartedAt, EndedAt: time.Now().UTC(),
	}
	job.failures = append(job.failures, failure)
	again := retryable && t.Attempt < job.spec.MaxAttempts
	f.stepFailedLocked(job, &failure, again)
	if !again {
		f.buryLocked(job, i, &failure)
		f.endLocked(job, i, jobhost.Dead, jobhost.EventDead, &failure)
		return
	}
	t.turn()
	t.State, t.ReadyAt = jobhost.Retrying, time.Now().Add(fakeBackoff).UTC()
	f.tellTaskLocked(job, i, jobhost.EventRetrying, &failure)
	f.scheduleLocked(job, i)
}

// endLocked ends a task, and the job with its last one.
func (f *Fake) endLocked(job *fakeJob, i int, state jobhost.State, kind jobhost.EventKind, failure *jobhost.Failure) {
	t, now := &job.tasks[i], time.Now().UTC()
	t.run++
	t.turn()
	t.State, t.EndedAt = state, &now
	f.open--
	f.tellTaskLocked(job, i, kind, failure)
	if all := job.state(); all.Ended() && job.ended == nil {
		job.ended = &now
		f.tellLocked(job, jobhost.Event{Kind: jobhost.EventEnded, State: all, Task: i})
		close(job.done)
		f.followLocked(job)
		f.stepJobEndedLocked(job)
	}
}

// Cancel implements [jobhost.Controller].
func (f *Fake) Cancel(_ context.Context, id string) (jobhost.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	job, err := f.findLocked(id)
	if err != nil {
		return jobhost.Job{}, err
	}
	cancelled := 0
	for i := range job.tasks {
		if !job.tasks[i].State.Ended() {
			f.endLocked(job, i, jobhost.Cancelled, jobhost.EventCancelled, nil)
		}
		if job.tasks[i].State == jobhost.Cancelled {
			cancelled++
		}
	}
	if cancelled == 0 {
		return jobhost.Job{}, problem(jobhost.CodeConflict, "", "job %s has ended: it is %s", id, job.state())
	}
	return job.describe(true), nil
}

// Retry implements [jobhost.Controller].
func (f *Fake) Retry(_ context.Context, id string) (jobhost.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	job, err := f.findLocked(id)
	if err != nil {
		return jobhost.Job{}, err
	}
	var revived []int
	for i := range job.tasks {
		if t := &job.tasks[i]; t.State == jobhost.Dead || t.State == jobhost.Cancelled {
			revived = append(revived, i)
		}
	}
	if len(revived) == 0 {
		return jobhost.Job{}, problem(jobhost.CodeConflict, "", "job %s has no dead or cancelled task", id)
	}
	return f.reviveLocked(job, revived), nil
}

// Delete implements [jobhost.Controller].
func (f *Fake) Delete(ctx context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	job, err := f.findLocked(id)
	if err != nil {
		return err
	}
	if job.ended == nil {
		return problem(jobhost.CodeConflict, "", "job %s is open", id)
	}
	delete(f.jobs, id)
	for i, other := range f.order {
		if other == job {
			f.order = append(f.order[:i:i], f.order[i+1:]...)
			break
		}
	}
	return f.deleteStates(ctx, id)
}

// deleteStates removes the states of a job, with those of all of its runs.
func (f *Fake) deleteStates(ctx context.Context, id string) error {
	_ = f.cfg.States.Delete(ctx, state.Job{ID: id}) // there may be none
	for after := id; ; {
		batch, err := f.cfg.States.Jobs(ctx, after, 100)
		if err != nil || len(batch) == 0 {
			return err
		}
		for i := range batch {
			if after = batch[i].Key(); batch[i].ID == id {
				_ = f.cfg.States.Delete(ctx, batch[i].Job)
			}
		}
	}
}
