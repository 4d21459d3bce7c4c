package hosttest

import (
	"context"

	"github.com/jobhost/jobhost"
)

// PauseWorker implements [jobhost.Operator].
func (f *Fake) PauseWorker(_ context.Context, worker string) (jobhost.WorkerStatus, error) {
	return f.operate(worker, func() { f.mode = jobhost.WorkerPaused })
}

// DrainWorker implements [jobhost.Operator].
func (f *Fake) DrainWorker(_ context.Context, worker string) (jobhost.WorkerStatus, error) {
	return f.operate(worker, func() { f.mode = jobhost.WorkerDraining })
}

// ResumeWorker implements [jobhost.Operator].
func (f *Fake) ResumeWorker(_ context.Context, worker string) (jobhost.WorkerStatus, error) {
	return f.operate(worker, func() {
		f.mode = jobhost.WorkerRunning
		for _, job := range f.order {
			for i := range job.tasks {
				if job.tasks[i].State == jobhost.Held {
					f.runLocked(job, i)
				}
			}
		}
	})
}

// ScaleWorker implements [jobhost.Operator]; the number means nothing to a fake.
func (f *Fake) ScaleWorker(_ context.Context, worker string, slots int) (jobhost.WorkerStatus, error) {
	if err := jobhost.CheckSlots(slots); err != nil {
		return jobhost.WorkerStatus{}, err
	}
	return f.operate(worker, func() { f.slots = slots })
}

// ResetBreaker implements [jobhost.Operator]; a fake has no breaker.
func (f *Fake) ResetBreaker(_ context.Context, worker string) (jobhost.WorkerStatus, error) {
	status, err := f.operate(worker, func() {})
	if err == nil {
		err = problem(jobhost.CodeConflict, "worker", "worker %s has no breaker", worker)
	}
	return status, err
}

func (f *Fake) operate(worker string, do func()) (jobhost.WorkerStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return jobhost.WorkerStatus{}, problem(jobhost.CodeUnavailable, "", "the host is stopping")
	case worker != FakeWorker:
		return jobhost.WorkerStatus{}, problem(jobhost.CodeNotFound, "worker", "there is no worker %q", worker)
	}
	do()
	return f.statusLocked(), nil
}
