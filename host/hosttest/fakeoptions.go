package hosttest

import (
	"encoding/json"
	"time"

	"github.com/jobhost/jobhost"
)

// uniqueLocked returns the job that keeps another one out by its unique key.
func (f *Fake) uniqueLocked(spec *jobhost.Spec) *fakeJob {
	if spec.UniqueKey == "" {
		return nil
	}
	var last *fakeJob
	for _, job := range f.order {
		if job.spec.UniqueKey == spec.UniqueKey && f.jobs[job.spec.ID] == job {
			last = job
		}
	}
	if last == nil || last.spec.UniqueFor != 0 && time.Since(last.created) >= last.spec.UniqueFor {
		return nil
	}
	return last
}

// expireLocked gives a job up when its deadline passes.
func (f *Fake) expireLocked(job *fakeJob) {
	if job.spec.Deadline == 0 {
		return
	}
	time.AfterFunc(job.spec.Deadline, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i := range job.tasks {
			t, now := &job.tasks[i], time.Now().UTC()
			if t.State.Ended() || t.State == jobhost.Running {
				continue
			}
			failure := jobhost.Failure{
				Code: jobhost.FailDeadline, Category: jobhost.CategoryTimeout, Severity: jobhost.SeverityError,
				Message: "its deadline passed", Task: i, Attempt: t.Attempt, StartedAt: now, EndedAt: now,
			}
			job.failures = append(job.failures, failure)
			f.endLocked(job, i, jobhost.Dead, jobhost.EventDead, &failure)
		}
	})
}

// followLocked submits the callback of a job that has ended.
func (f *Fake) followLocked(job *fakeJob) {
	if job.spec.Callback.Worker == "" {
		return
	}
	counts := job.counts()
	payload, err := json.Marshal(jobhost.Ended{
		Job: job.spec.ID, Worker: job.spec.Worker, State: job.state(), Labels: job.spec.Labels, EndedAt: *job.ended,
		Tasks: counts.Numbers(), Result: string(job.tasks[0].result),
	})
	if err != nil {
		payload = nil
	}
	spec := jobhost.Spec{Worker: job.spec.Callback.Worker, Payload: payload}
	normalise(&spec)
	next := f.addLocked(spec)
	f.scheduleLocked(next, 0)
}
