package pool

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/effect"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// slot runs tasks, one after another, in one sandbox.
type slot struct {
	hostcall.Services // of the host; the slot adds those that need the lease

	number  int
	pool    *Pool
	queue   *queue.Slot
	version *version // the version of the sandbox; held by the slot
	sandbox *runtime.Sandbox
	apart   *runtime.Sandbox // in the version's separate process; nil = not needed yet
	ended   bool             // the last run there ended the process
	noted   *journal.Entry   // of the running attempt
	lease   *queue.Lease
	attempt hostcall.Attempt // reused
	// gathered are the effects of the attempt; nil = none.
	gathered *effect.Attempt
	// contents are the payload and result of the attempt if they are not in memory;
	// nil = none.
	contents *contents
	// fault is a payload store's refusal of a job that the attempt submitted; nil =
	// none.
	fault *queue.StoreFault
	// states are what the attempt reports and sees; nil = not used yet.
	states *taskstate.Guest
	ctx    context.Context // of the running attempt
}

// Progress records the attempt's progress for queries of the job.
func (s *slot) Progress(at *hostcall.Attempt, done, total int64) {
	s.lease.SetProgress(done, total)
	s.Services.Progress(at, done, total)
}

// run takes and runs tasks until the slot is surplus, the queue is closed or ctx
// ends.
func (s *slot) run(ctx context.Context) error {
	for s.enter() {
		lease, err := s.queue.Take(s.version.taking.Load().ctx)
		if errors.Is(err, errReplaced) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			s.leave()
			return nil //nolint:nilerr // the worker is being stopped, which is no fault of the slot
		}
		s.renew()
		s.pool.busy.Add(1)
		report := s.runTask(lease)
		s.pool.busy.Add(-1)
		s.pool.cfg.Queue.Settle(lease, report)
	}
	return nil
}

// enter switches to the current version before waiting for a task, and reports
// whether the slot is still wanted.
func (s *slot) enter() bool {
	if s.version != nil && s.version == s.pool.current.Load() && int64(s.number) < s.pool.size.Load() {
		return true
	}
	s.close() // a plugin is closed after its last sandbox
	next, wanted := s.pool.switchVersion(s.number, s.version)
	s.hold(next)
	return wanted
}

// renew switches to the current version for the task that was taken.
func (s *slot) renew() {
	if now := s.pool.current.Load(); now == nil || now == s.version {
		return
	}
	s.close()
	s.hold(s.pool.adopt(s.version))
}

// leave releases the slot's version when the slot ends.
func (s *slot) leave() {
	s.close()
	s.pool.release(s.number, s.version)
	s.version = nil
}

// hold creates an empty sandbox for a version that the slot now holds.
func (s *slot) hold(v *version) {
	if v == s.version {
		return
	}
	s.version, s.sandbox = v, nil
	if v != nil {
		s.sandbox = runtime.NewSandbox(v.Plugin, s.pool.cfg.Ran)
	}
}

// runTask runs one attempt in its own scope below the worker's: it can be stopped
// alone, and is stopped with the worker.
func (s *slot) runTask(lease *queue.Lease) queue.Report {
	s.prepare(lease)
	s.note(lease)
	defer s.noted.Settle()
	var report queue.Report
	result := scope.Run(s.pool.scope, "task", func(ctx context.Context, task *scope.Scope) (struct{}, error) {
		if log := s.pool.cfg.Logger; log.Enabled(ctx, slog.LevelDebug) {
			log.Debug("attempt begins", logkey.Job, lease.Job.ID, logkey.Worker, lease.Job.Worker, logkey.Workflow, lease.Job.Origin.WorkflowID(),
				logkey.Task, lease.Index, logkey.Attempt, lease.Number())
		}
		lease.OnCancel(func() { s.cancel(task) })
		defer lease.OnCancel(nil)
		s.ctx = ctx
		defer s.closeStates()
		report.Outcome = s.runSandbox(ctx)
		if s.contents != nil {
			s.endContents(&report)
		}
		return struct{}{}, nil
	}, scope.Forget())
	s.dropContents() // there are some left only after a fault of the host
	if report.Outcome.Kind == 0 {
		report.Outcome = s.interrupted(result.Report)
	}
	if report.Outcome.Kind == jobhost.OutcomeFailed && report.Fault == nil {
		report.Fault = s.fault // a guest that continues without the job didn't fail because of it
	}
	report.Log, report.LogDropped = s.attempt.TakeLog()
	report.Effects = s.takeEffects()
	return report
}

// prepare sets up the attempt for a lease.
func (s *slot) prepare(lease *queue.Lease) {
	s.lease, s.fault = lease, nil
	job, v := lease.Job, s.version
	at := &s.attempt
	at.Reset()
	at.Job, at.Worker = job.ID, job.Worker
	at.Task, at.Tasks = lease.Index, job.Tasks
	at.Number, at.Trace = lease.Number(), job.Origin.WorkflowID()
	at.Priority, at.Labels = job.Priority, job.Labels
	at.Entry, at.Input = job.Entry, lease.Input()
	if job.Ref != "" {
		at.LargeInput = job.PayloadSize()
	}
	at.Deadline = time.Now().Add(job.Timeout)
	at.Config, at.Secrets, at.MaySubmit, at.MayWatch = v.Config, v.Secrets, v.MaySubmit, v.MayWatch
	at.Limits, at.Services = v.Limits, s
}

// cancel signals the cancellation of the job to the guest and stops it after the
// grace period.
func (s *slot) cancel(task *scope.Scope) {
	s.attempt.Cancel()
	grace := time.AfterFunc(s.pool.cfg.CancelGrace, func() { task.Cancel(hostcall.ErrCancelled) })
	context.AfterFunc(task.Context(), func() { grace.Stop() })
}

// interrupted is the outcome of an attempt that produced none: it was never started,
// or the host has a fault.
func (s *slot) interrupted(report scope.Report) jobhost.Outcome {
	err := report.Err()
	if report.Status == scope.StatusCancelled {
		return jobhost.Outcome{Kind: jobhost.OutcomeReturned}
	}
	if _, rejected := errors.AsType[*scope.AdmissionError](err); rejected {
		return jobhost.Outcome{Kind: jobhost.OutcomeReturned}
	}
	if err == nil {
		err = errNoOutcome
	}
	attrs := []any{logkey.Worker, s.pool.cfg.Worker, logkey.Job, s.lease.Job.ID, logkey.Error, err}
	if fault, panicked := errors.AsType[*scope.PanicError](err); panicked {
		attrs = append(attrs, logkey.Stack, string(fault.Stack))
	}
	s.pool.cfg.Logger.Error("attempt met a fault of the host", attrs...)
	// The sandbox is in an unknown state; the next task gets a new one.
	s.close()
	return s.attempt.Failure(jobhost.FailInternal, jobhost.CategorySystem, "the host has a fault; its log says more")
}

// errNoOutcome is the fault of an engine that violates its contract.
var errNoOutcome = errors.New("the sandbox gave no outcome")

// close frees the slot's sandboxes; the next run creates a new one.
func (s *slot) close() {
	for _, sandbox := range []*runtime.Sandbox{s.sandbox, s.apart} {
		if sandbox == nil {
			continue
		}
		if err := closeSandbox(sandbox); err != nil {
			s.pool.cfg.Logger.Warn("sandbox does not close", logkey.Worker, s.pool.cfg.Worker, logkey.Error, err)
		}
	}
	s.apart = nil
}

// closeSandbox turns a panic into an error: a sandbox may be too broken to be closed,
// and that must not cost the slot its lease.
func closeSandbox(sandbox *runtime.Sandbox) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &scope.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return sandbox.Close(context.Background())
}
