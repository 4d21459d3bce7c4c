package pool

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/runtime"
)

// Apart runs tasks that may have crashed a host: in a process of their own, whatever the
// worker's setting.
type Apart interface {
	// Plugin returns the plugin in its process, which the first call starts. On an error
	// other than that of ctx no task can run there, and the worker is held.
	Plugin(ctx context.Context) (runtime.Plugin, error)
	// Close ends the process, after the last sandbox was closed.
	Close(ctx context.Context) error
}

// note records the attempt of a lease until it is settled.
func (s *slot) note(lease *queue.Lease) {
	place, phase := s.version.Place, journal.Running
	if s.isApart(lease) {
		place, phase = journal.Process, journal.Waiting
	}
	s.noted = s.pool.cfg.Journal.Begin(&journal.Task{
		Worker: s.pool.cfg.Worker, Job: lease.Job.ID, Place: place, Index: lease.Index, Number: lease.Number(),
		Key: int64(lease.Key), Token: lease.Token, Began: lease.TakenAt,
	}, phase)
	lease.Note(s.noted)
}

func (s *slot) isApart(lease *queue.Lease) bool { return lease.Suspect && s.version.Apart != nil }

// runSandbox runs the attempt in the appropriate sandbox.
func (s *slot) runSandbox(ctx context.Context) jobhost.Outcome {
	if s.isApart(s.lease) {
		return s.runApart(ctx)
	}
	return s.sandbox.Run(ctx, &s.attempt)
}

// runApart runs an attempt whose task may have crashed a host. Waiting for the process
// doesn't count towards its timeout. If there can't be a process, the task goes back to
// the queue, and the worker is held.
func (s *slot) runApart(ctx context.Context) jobhost.Outcome {
	began := time.Now()
	plugin, err := s.version.Apart.Plugin(ctx)
	if err != nil {
		return jobhost.Outcome{Kind: jobhost.OutcomeReturned}
	}
	s.attempt.Deadline = s.attempt.Deadline.Add(time.Since(began))
	s.noted.Run()
	if s.apart == nil {
		s.apart = runtime.NewSandbox(plugin, s.ranApart)
	}
	outcome := s.apart.Run(ctx, &s.attempt)
	if !s.ended || outcome.Failure == nil {
		return outcome
	}
	f := outcome.Failure
	f.Code, f.Severity = jobhost.FailHostCrash, jobhost.SeverityCritical
	f.Message = "it was under way when a host died, and has now ended the process that it ran in apart: " + f.Message
	if s.pool.cfg.EndedProcess != nil {
		s.pool.cfg.EndedProcess(ctx, f)
	}
	return outcome
}

// ranApart records whether the run ended its process. The failure code alone doesn't
// tell, since workers choose codes of their own.
func (s *slot) ranApart(r *runtime.Result) {
	f := r.Outcome.Failure
	s.ended = f != nil && f.Code == jobhost.FailCrash && r.Replace == runtime.ReplacedTrap
	if s.pool.cfg.Ran != nil {
		s.pool.cfg.Ran(r)
	}
}
