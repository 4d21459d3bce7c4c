package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// Why tells why a job is where it is, and what would end that. Of a job with
// several tasks it speaks of the first one that has the job's state.
func (q *Queue) Why(ctx context.Context, id string) (jobhost.Why, error) {
	job, stored, err := q.look(ctx, id)
	if err != nil {
		return jobhost.Why{}, err
	}
	why := jobhost.Why{ID: id, State: job.State}
	var task jobhost.Task
	for _, t := range job.Tasks {
		if t.State == job.State {
			task = t
			break
		}
	}
	switch job.State {
	case jobhost.Scheduled:
		why.Code, why.Until = "scheduled", &task.ReadyAt
		why.Reason = "its time has not come: it may run at " + task.ReadyAt.Format(time.RFC3339Nano)
	case jobhost.Retrying:
		why.Code, why.Until = "retry", &task.ReadyAt
		why.Reason = fmt.Sprintf("attempt %d of %d failed (%s); the next one is at %s",
			task.Attempt, job.MaxAttempts, lastFailure(job, task), task.ReadyAt.Format(time.RFC3339Nano))
	case jobhost.Held:
		q.whyHeld(&why, job, &stored)
	case jobhost.Ready:
		q.whyReady(&why, job)
	case jobhost.Running:
		if q.whyKept(&why, &stored) {
			return why, nil
		}
		why.Code = "running"
		why.Reason = fmt.Sprintf("attempt %d of %d runs since %s", task.Attempt, job.MaxAttempts, task.StartedAt.Format(time.RFC3339Nano))
		why.Ends = fmt.Sprintf("the worker, or its timeout of %v", job.Timeout)
	default:
		q.whyEnded(&why, job, task)
	}
	return why, nil
}

// whyHeld tells what holds a job.
func (q *Queue) whyHeld(why *jobhost.Why, job jobhost.Job, stored *record.JobRecord) {
	l := q.lanes.of(job.Worker)
	if l == nil {
		whyParked(why, job)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.holdLocked() {
	case holdPaused:
		why.Code, why.Reason = "paused", fmt.Sprintf("worker %s is paused", job.Worker)
		why.Ends = "jobhost worker resume " + job.Worker
	case holdDraining:
		why.Code, why.Reason = "draining", fmt.Sprintf("worker %s is draining", job.Worker)
		why.Ends = "jobhost worker resume " + job.Worker
	case holdDisabled:
		why.Code, why.Reason = "disabled", fmt.Sprintf("worker %s is disabled: %s", job.Worker, l.disabled)
		why.Ends = "jobhost worker resume " + job.Worker + ", or another version of it"
	case holdRate:
		until := l.rate.Next().UTC()
		why.Code, why.Until = "rate_limit", &until
		why.Reason = fmt.Sprintf("tasks of worker %s begin no faster than its rate_limit of %v", job.Worker, l.worker.Load().Rate)
		why.Ends = "time, or a higher rate_limit"
	case holdBreaker:
		q.whyBreaker(why, l.breaker, "; or jobhost worker reset-breaker "+job.Worker)
	case notHeld:
		if !l.whyAsideLocked(why, stored) {
			q.whyGroup(why, l, &stored.JobSpec)
		}
	default:
		whyParked(why, job)
	}
}

// whyGroup tells what holds the tasks of a job's group.
func (q *Queue) whyGroup(why *jobhost.Why, l *lane, spec *record.JobSpec) {
	if l.jobBreakers.holds(spec.Group()) {
		q.whyBreaker(why, l.jobBreakers.byGroup[spec.Group()].sharedBreaker, "")
		return
	}
	if n := spec.Group().Limit(0); n > 0 {
		why.Code = "max_parallel"
		why.Reason = fmt.Sprintf("%d of its tasks run, which is its max_parallel", n)
		why.Ends = "the end of one of them"
		return
	}
	why.Code = "concurrency"
	why.Reason = fmt.Sprintf("%d of its tasks with the concurrency key %q run, which is the concurrency_per_key of worker %s",
		l.worker.Load().PerKey, spec.ConcurrencyKey, spec.Worker)
	why.Ends = "the end of one of them, or a higher concurrency_per_key"
}

// whyBreaker tells why a breaker holds a job; reset is how people end that, if they can.
func (q *Queue) whyBreaker(why *jobhost.Why, shared *sharedBreaker, reset string) {
	policy, b := shared.Policy(), shared.Status(q.clock.now())
	if b.State == jobhost.BreakerHalfOpen {
		why.Code = "breaker_half_open"
		why.Reason = fmt.Sprintf("circuit breaker %s is half open, and %d tasks that try it run", b.Key, policy.Probes)
		why.Ends = fmt.Sprintf("the success of %d of them%s", policy.Probes, reset)
		return
	}
	why.Code, why.Until = "breaker_open", b.Until
	why.Reason = fmt.Sprintf("circuit breaker %s is open after %d failures in a row", b.Key, policy.Failures)
	why.Ends = "time: then some tasks try again" + reset
}

func whyParked(why *jobhost.Why, job jobhost.Job) {
	why.Code = "no_worker"
	why.Reason = fmt.Sprintf("no worker %q is loaded", job.Worker)
	why.Ends = "the worker's return: put it into the manifest, then jobhost worker reload " + job.Worker
}

// whyReady tells what a ready job waits for.
func (q *Queue) whyReady(why *jobhost.Why, job jobhost.Job) {
	l := q.lanes.of(job.Worker)
	stats := l.stats()
	ahead := stats.readyTotal() - 1
	need := l.worker.Load().Memory
	full, memory, bound := q.gate.lacks(need)
	switch {
	case q.closed.Load():
		why.Code, why.Reason = "stopping", "the host is stopping"
		why.Ends = "the next start of the host"
	case stats.Idle > 0 && memory:
		why.Code = "max_memory"
		why.Reason = fmt.Sprintf("a task of worker %s may take %s of memory, and running tasks have too much of the host's max_memory of %s",
			job.Worker, mebibytes(need), mebibytes(bound))
		why.Ends = "the end of running tasks, a larger max_memory, or a smaller memory limit of the workers"
	case stats.Idle > 0 && full:
		why.Code = "max_running"
		why.Reason = fmt.Sprintf("%d tasks run on this host, which is its max_running", q.cfg.MaxRunning)
		why.Ends = "the end of a running task"
	default:
		why.Code = "no_slot"
		why.Reason = fmt.Sprintf("all slots of worker %s are busy; %d other tasks are ready", job.Worker, max(ahead, 0))
		why.Ends = "the end of a running task, or a larger pool_size"
	}
}

func (q *Queue) whyEnded(why *jobhost.Why, job jobhost.Job, task jobhost.Task) {
	why.Code = job.State.String()
	switch job.State {
	case jobhost.Dead:
		why.Reason = fmt.Sprintf("attempt %d of %d failed: %s", task.Attempt, job.MaxAttempts, lastFailure(job, task))
		why.Ends = "jobhost job retry " + job.ID
	case jobhost.Cancelled:
		why.Reason = "it was cancelled"
		why.Ends = "jobhost job retry " + job.ID
	default:
		why.Reason = "it is done"
	}
}

func lastFailure(job jobhost.Job, task jobhost.Task) string {
	for i := len(job.Failures) - 1; i >= 0; i-- {
		if f := job.Failures[i]; f.Task == task.Index {
			return f.Code + ": " + f.Message
		}
	}
	return "no record"
}

func mebibytes(n int64) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }
