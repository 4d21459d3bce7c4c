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

// slot runs tasks, one after the other, in one sandbox.
type slot struct {
	hostcall.Services // of the host; the slot adds what it knows of the lease

	number  int
	pool    *Pool
	queue   *queue.Slot
	version *version // that the sandbox is of; the slot holds it
	sandbox *runtime.Sandbox
	apart   *runtime.Sandbox // in the version's process apart; nil = not needed yet
	ended   bool             // the last run there has ended the process
	noted   *journal.Entry   // of the running attempt
	lease   *queue.Lease
	attempt hostcall.Attempt // reused
	// gathered are the effects of the attempt; nil = it asked for none.
	gathered *effect.Attempt
	// contents are what the attempt reads and writes that is not in memory; nil =
	// nothing.
	contents *contents
	// fault is what a payload store has refused of the attempt's jobs; nil = nothing.
	fault *queue.StoreFault
	// states are what the attempt reports and sees; nil = nothing yet.
	states *taskstate.Guest
	ctx    context.Context // of the running attempt
}

// Progress notes how far the attempt is, for those who ask for the job.
func (s *slot) Progress(at *hostcall.Attempt, done, total int64) {
	s.lease.SetProgress(done, total)
	s.Services.Progress(at, done, total)
}

// run takes and runs tasks until there is no place for the slot, the queue is
// closed or ctx ends.
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

// enter turns to the current version before a wait for a task, and reports
// whether the slot is still wanted.
func (s *slot) enter() bool {
	if s.version != nil && s.version == s.pool.current.Load() && int64(s.number) < s.pool.size.Load() {
		return true
	}
	s.close() // a plugin is closed after its last sandbox
	next, wanted := s.pool.turn(s.number, s.version)
	s.hold(next)
	return wanted
}

// renew turns to the version of the moment for the task that was taken.
func (s *slot) renew() {
	if now := s.pool.current.Load(); now == nil || now == s.version {
		return
	}
	s.close()
	s.hold(s.pool.adopt(s.version))
}

// leave gives up the slot's version, when the slot ends.
func (s *slot) leave() {
	s.close()
	s.pool.release(s.number, s.version)
	s.version = nil
}

// hold makes an empty sandbox of a version that the slot now holds.
func (s *slot) hold(v *version) {
	if v == s.version {
		return
	}
	s.version, s.sandbox = v, nil
	if v != nil {
		s.sandbox = runtime.NewSandbox(v.Plugin, s.pool.cfg.Ran)
	}
}

// runTask runs one attempt, in a scope of its own below the worker's: it can
// be stopped alone, and is stopped with the worker.
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
	s.dropContents() // there are some only after a fault of the host
	if report.Outcome.Kind == 0 {
		report.Outcome = s.interrupted(result.Report)
	}
	if report.Outcome.Kind == jobhost.OutcomeFailed && report.Fault == nil {
		report.Fault = s.fault // a guest that goes on without the job has not failed by it
	}
	report.Log, report.LogDropped = s.attempt.TakeLog()
	report.Effects = s.takeEffects()
	return report
}

// prepare sets the attempt up for a lease.
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

// cancel tells the guest that its job was cancelled and stops it after the grace.
func (s *slot) cancel(task *scope.Scope) {
	s.attempt.Cancel()
	grace := time.AfterFunc(s.pool.cfg.CancelGrace, func() { task.Cancel(hostcall.ErrCancelled) })
	context.AfterFunc(task.Context(), func() { grace.Stop() })
}

// interrupted is the outcome of an attempt that did not come to one: it was not
// begun, or the host has a fault.
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
	// The sandbox is in an unknown state; the next task gets another one.
	s.close()
	return s.attempt.Failure(jobhost.FailInternal, jobhost.CategorySystem, "the host has a fault; its log says more")
}

// errNoOutcome is the fault of an engine that breaks its contract.
var errNoOutcome = errors.New("the sandbox gave no outcome")

// close frees the slot's sandbox; the next run makes a new one.
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

// closeSandbox makes a panic an error: what has met a fault may be too broken
// to be closed, and that must not cost the slot its lease.
func closeSandbox(sandbox *runtime.Sandbox) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &scope.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return sandbox.Close(context.Background())
}
