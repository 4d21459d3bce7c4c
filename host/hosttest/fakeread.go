package hosttest

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
)

func (f *Fake) findLocked(id string) (*fakeJob, error) {
	if err := jobhost.CheckID(id); err != nil {
		return nil, err
	}
	if job := f.jobs[id]; job != nil {
		return job, nil
	}
	return nil, problem(jobhost.CodeNotFound, "id", "there is no job %s", id)
}

func (j *fakeJob) counts() (c jobhost.Counts) {
	for i := range j.tasks {
		c[j.tasks[i].State]++
	}
	return c
}

func (j *fakeJob) state() jobhost.State {
	c := j.counts()
	return jobhost.JobState(&c)
}

// describe tells of a job, with its tasks and failures if full.
func (j *fakeJob) describe(full bool) jobhost.Job {
	s := &j.spec
	job := jobhost.Job{
		ID: s.ID, Worker: s.Worker, State: j.state(), Priority: s.Priority, Entry: s.Entry,
		ContentType: s.ContentType, ConcurrencyKey: s.ConcurrencyKey, UniqueKey: s.UniqueKey, Labels: s.Labels, PayloadSize: len(s.Payload), MaxAttempts: s.MaxAttempts,
		Timeout: jobhost.Duration(s.Timeout), CreatedAt: j.created, EndedAt: j.ended, TaskCount: len(j.tasks),
	}
	if j.workflow != nil {
		job.Workflow, job.Step = j.workflow.id, j.workflow.steps[j.run.Step].Name
	}
	if full {
		for i := range j.tasks {
			job.Tasks = append(job.Tasks, j.tasks[i].Task)
		}
		job.Failures = slices.Clone(j.failures)
	}
	return job
}

// Job implements [jobhost.Reader].
func (f *Fake) Job(_ context.Context, id string) (jobhost.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	job, err := f.findLocked(id)
	if err != nil {
		return jobhost.Job{}, err
	}
	return job.describe(true), nil
}

// Jobs implements [jobhost.Reader]. Cursors are keys.
func (f *Fake) Jobs(_ context.Context, filter jobhost.Filter) (jobhost.Page, error) {
	below, err := int(^uint(0)>>1), error(nil)
	if filter.Cursor != "" {
		if below, err = strconv.Atoi(filter.Cursor); err != nil {
			return jobhost.Page{}, problem(jobhost.CodeInvalid, "cursor", "the cursor is not one that a list returned")
		}
	}
	if filter.Limit <= 0 {
		filter.Limit = 50
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var page jobhost.Page
	for _, job := range slices.Backward(f.order) {
		if job.key >= below || !job.matches(&filter) {
			continue
		}
		if len(page.Jobs) == filter.Limit {
			page.Next = strconv.Itoa(below)
			break
		}
		page.Jobs = append(page.Jobs, job.describe(false))
		below = job.key
	}
	return page, nil
}

func (j *fakeJob) matches(f *jobhost.Filter) bool {
	counts := j.counts()
	for name, value := range f.Labels {
		if got, ok := j.spec.Labels[name]; !ok || got != value {
			return false
		}
	}
	return (f.Worker == "" || f.Worker == j.spec.Worker) && f.Parent == "" && // nobody has children

		(f.State == 0 || counts[f.State] > 0) &&
		(f.After.IsZero() || !j.created.Before(f.After)) &&
		(f.Before.IsZero() || j.created.Before(f.Before))
}

// Result implements [jobhost.Reader].
func (f *Fake) Result(_ context.Context, id string, task int) (jobhost.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	job, err := f.findLocked(id)
	if err != nil {
		return jobhost.Result{}, err
	}
	if task < 0 || task >= len(job.tasks) {
		return jobhost.Result{}, problem(jobhost.CodeNotFound, "task", "job %s has no task %d", id, task)
	}
	if state := job.tasks[task].State; state != jobhost.Succeeded {
		return jobhost.Result{}, problem(jobhost.CodeConflict, "task", "task %d of job %s has no result: it is %s", task, id, state)
	}
	return jobhost.Result{Task: task, Data: job.tasks[task].result}, nil
}

// Logs implements [jobhost.Reader].
func (f *Fake) Logs(_ context.Context, id string) ([]jobhost.AttemptLog, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	job, err := f.findLocked(id)
	if err != nil {
		return nil, err
	}
	return slices.Clone(job.logs), nil
}

// Why implements [jobhost.Reader].
func (f *Fake) Why(ctx context.Context, id string) (jobhost.Why, error) {
	job, err := f.Job(ctx, id)
	if err != nil {
		return jobhost.Why{}, err
	}
	why := jobhost.Why{ID: id, State: job.State, Code: job.State.String(), Reason: "it is " + job.State.String()}
	if job.State == jobhost.Held {
		why.Code, why.Ends = f.why(), "resume"
	}
	for _, t := range job.Tasks {
		if t.State == job.State && t.ReadyAt.After(time.Now()) {
			why.Until, why.Ends = &t.ReadyAt, "time"
		}
	}
	return why, nil
}

// why is the reason of everything that is held.
func (f *Fake) why() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.mode)
}

// Workers implements [jobhost.WorkerLister].
func (f *Fake) Workers(context.Context) ([]jobhost.WorkerStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []jobhost.WorkerStatus{f.statusLocked()}, nil
}

func (f *Fake) statusLocked() jobhost.WorkerStatus {
	var counts jobhost.Counts
	for _, job := range f.order {
		for state, n := range job.counts() {
			counts[state] += n
		}
	}
	return jobhost.WorkerStatus{
		Name: FakeWorker, Plugin: "outcomes.wasm", SHA256: fakeDigest, Version: 1, ABI: "jobhost1", Entry: "echo", Mode: f.mode, Slots: f.slots, PoolSize: 1,
		QueueCapacity: f.cfg.QueueCapacity, Timeout: jobhost.Duration(30 * time.Second), Tasks: counts.Numbers(),
	}
}
