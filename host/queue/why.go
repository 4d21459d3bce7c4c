package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload"
)

// Why explains why a job is where it is, and what would end that. Of a job with
// several tasks it speaks of the first one that has the job's state.
func (q *Queue) Why(ctx context.Context, id string) (jobhost.Why, error) {
	job, stored, err := q.look(ctx, id)
	if err != nil {
		return jobhost.Why{}, err
	}
	why := &explanation{q: q, job: job, stored: &stored, Why: jobhost.Why{ID: id, State: job.State}}
	var task jobhost.Task
	for _, t := range job.Tasks {
		if t.State == job.State {
			task = t
			break
		}
	}
	if why.suspect() {
		return why.Why, nil
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
		why.held()
	case jobhost.Ready:
		why.ready()
	case jobhost.Running:
		if why.kept() {
			return why.Why, nil
		}
		why.Code = "running"
		why.Reason = fmt.Sprintf("attempt %d of %d runs since %s", task.Attempt, job.MaxAttempts, task.StartedAt.Format(time.RFC3339Nano))
		why.Ends = fmt.Sprintf("the worker, or its timeout of %v", job.Timeout)
	default:
		why.ended(task)
	}
	return why.Why, nil
}

// explanation is an answer of [Queue.Why] in the making.
type explanation struct {
	q      *Queue
	job    jobhost.Job
	stored *record.JobRecord
	jobhost.Why
}

// held explains what holds the job.
func (x *explanation) held() {
	l := x.q.lanes.of(x.job.Worker)
	if l == nil {
		x.parked()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.holdLocked() {
	case holdPaused:
		x.Code, x.Reason = "paused", fmt.Sprintf("worker %s is paused", x.job.Worker)
		x.Ends = "jobhost worker resume " + x.job.Worker
	case holdDraining:
		x.Code, x.Reason = "draining", fmt.Sprintf("worker %s is draining", x.job.Worker)
		x.Ends = "jobhost worker resume " + x.job.Worker
	case holdDisabled:
		x.Code, x.Reason = "disabled", fmt.Sprintf("worker %s is disabled: %s", x.job.Worker, l.disabled)
		x.Ends = "jobhost worker resume " + x.job.Worker + ", or another version of it"
	case holdFailed:
		x.Code, x.Reason = "stopping", "the store has failed, or another host leads: this host is stopping"
		x.Ends = "the next start of the host, or the host that leads"
	case holdLease:
		x.Code, x.Reason = "lease", "this host could not renew its lease for a while, so another one may lead soon"
		x.Ends = "the database's answer, or another host"
	case holdRate:
		until := l.rate.Next().UTC()
		x.Code, x.Until = "rate_limit", &until
		x.Reason = fmt.Sprintf("tasks of worker %s begin no faster than its rate_limit of %v", x.job.Worker, l.worker.Load().Rate)
		x.Ends = "time, or a higher rate_limit"
	case holdBreaker:
		x.breaker(l.breaker, "; or jobhost worker reset-breaker "+x.job.Worker)
	case notHeld:
		if !x.aside(l) {
			x.group(l)
		}
	default:
		x.parked()
	}
}

// suspect explains that a job waits for others that may end hosts, if it does.
func (x *explanation) suspect() bool {
	for i := range x.stored.Tasks {
		task := &x.stored.Tasks[i]
		deaths, most := x.q.suspects.holds(task.Key, task.Token)
		if deaths == 0 {
			continue
		}
		x.Code = "suspect"
		x.Reason = fmt.Sprintf("attempts of it were under way when hosts that led died, %d times, and others too: of such tasks %d may run at one time", deaths, most)
		x.Ends = "the end of those that run"
		return true
	}
	return false
}

// group explains what holds the tasks of a job's group.
func (x *explanation) group(l *lane) {
	if l.jobBreakers.holds(x.stored.Group()) {
		x.breaker(l.jobBreakers.byGroup[x.stored.Group()].sharedBreaker, "")
		return
	}
	if n := x.stored.Group().Limit(0); n > 0 {
		x.Code = "max_parallel"
		x.Reason = fmt.Sprintf("%d of its tasks run, which is its max_parallel", n)
		x.Ends = "the end of one of them"
		return
	}
	x.Code = "concurrency"
	x.Reason = fmt.Sprintf("%d of its tasks with the concurrency key %q run, which is the concurrency_per_key of worker %s",
		l.worker.Load().PerKey, x.stored.ConcurrencyKey, x.stored.Worker)
	x.Ends = "the end of one of them, or a higher concurrency_per_key"
}

// breaker explains why a breaker holds the job; reset is how to end that, if there is a way.
func (x *explanation) breaker(shared *sharedBreaker, reset string) {
	policy, b := shared.Policy(), shared.Status(x.q.clock.now())
	if b.State == jobhost.BreakerHalfOpen {
		x.Code = "breaker_half_open"
		x.Reason = fmt.Sprintf("circuit breaker %s is half open, and %d tasks that try it run", b.Key, policy.Probes)
		x.Ends = fmt.Sprintf("the success of %d of them%s", policy.Probes, reset)
		return
	}
	x.Code, x.Until = "breaker_open", b.Until
	x.Reason = fmt.Sprintf("circuit breaker %s is open after %d failures in a row", b.Key, policy.Failures)
	x.Ends = "time: then some tasks try again" + reset
}

func (x *explanation) parked() {
	x.Code = "no_worker"
	x.Reason = fmt.Sprintf("no worker %q is loaded", x.job.Worker)
	where := "the manifest"
	if x.q.leased != nil {
		where += " of the host that leads"
	}
	x.Ends = "the worker's return: put it into " + where + ", then jobhost worker reload " + x.job.Worker
}

// ready explains what a ready job waits for.
func (x *explanation) ready() {
	l := x.q.lanes.of(x.job.Worker)
	stats := l.stats()
	ahead := stats.readyTotal() - 1
	need := l.worker.Load().Memory
	full, memory, bound := x.q.gate.lacks(need)
	switch {
	case x.q.closed.Load():
		x.Code, x.Reason = "stopping", "the host is stopping"
		x.Ends = "the next start of the host"
		if x.q.leased != nil {
			x.Ends = "the host that leads next"
		}
	case stats.Idle > 0 && memory:
		x.Code = "max_memory"
		x.Reason = fmt.Sprintf("a task of worker %s may take %s of memory, and running tasks have too much of the host's max_memory of %s",
			x.job.Worker, mebibytes(need), mebibytes(bound))
		x.Ends = "the end of running tasks, a larger max_memory, or a smaller memory limit of the workers"
	case stats.Idle > 0 && full:
		x.Code = "max_running"
		x.Reason = fmt.Sprintf("%d tasks run on this host, which is its max_running", x.q.cfg.MaxRunning)
		x.Ends = "the end of a running task"
	default:
		x.Code = "no_slot"
		x.Reason = fmt.Sprintf("all slots of worker %s are busy; %d other tasks are ready", x.job.Worker, max(ahead, 0))
		x.Ends = "the end of a running task, or a larger pool_size"
	}
}

func (x *explanation) ended(task jobhost.Task) {
	x.Code = x.job.State.String()
	switch x.job.State {
	case jobhost.Dead:
		x.Reason = fmt.Sprintf("attempt %d of %d failed: %s", task.Attempt, x.job.MaxAttempts, lastFailure(x.job, task))
		x.Ends = "jobhost job retry " + x.job.ID
	case jobhost.Cancelled:
		x.Reason = "it was cancelled"
		x.Ends = "jobhost job retry " + x.job.ID
	default:
		x.Reason = "it is done"
	}
}

// aside explains which payload store a job waits for, if it does.
func (x *explanation) aside(l *lane) bool {
	for i := range x.stored.Tasks {
		away := l.away[x.stored.Tasks[i].Key]
		if away == nil {
			continue
		}
		x.Code = "payload_store"
		doing := "can't be read"
		if away.Verb == payload.Put {
			doing = "takes nothing, and the host has no room for more results that it can't store"
		}
		x.Reason = fmt.Sprintf("payload store %s %s since %s", away.Store, doing, away.Since.UTC().Format(time.RFC3339))
		x.Ends = "the store's return, which the host looks for; its log says what the store answers"
		return true
	}
	return false
}

// kept explains that a result waits for its payload store, if one of the job's does.
func (x *explanation) kept() bool {
	l := x.q.lanes.of(x.stored.Worker)
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range x.stored.Tasks {
		if lease := l.running[x.stored.Tasks[i].Key]; lease != nil && lease.kept {
			x.Code = "result_waits"
			x.Reason = "the attempt has succeeded, and its result waits in the host's memory for a payload store that takes nothing now"
			x.Ends = "the store's return, which the host looks for; if the host ends before that, the task runs again"
			return true
		}
	}
	return false
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
