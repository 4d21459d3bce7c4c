package runtime

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Sandbox keeps one instance of a plugin for one slot of a pool: it creates the
// instance when it is first needed and replaces it when it is no longer as good
// as new. It is not safe for concurrent use.
type Sandbox struct {
	plugin   Plugin
	instance Instance      // nil until needed, and after it was discarded
	ran      func(*Result) // called after every run; may be nil
	result   Result        // of the run, for ran, which would otherwise cost an allocation each time
}

// NewSandbox returns an empty sandbox. ran is called after each run, before
// [Sandbox.Run] returns, with a result that is valid until then; it may be nil.
func NewSandbox(plugin Plugin, ran func(*Result)) *Sandbox {
	return &Sandbox{plugin: plugin, ran: ran}
}

// Run runs one attempt. If no instance can be created the outcome is a failure
// with code [jobhost.FailStart].
func (s *Sandbox) Run(ctx context.Context, at *hostcall.Attempt) jobhost.Outcome {
	if s.instance == nil {
		instance, err := s.plugin.Instantiate(ctx)
		if err != nil {
			return startFailed(ctx, at, err)
		}
		s.instance = instance
	}
	defer at.Release() // what the guest left open
	s.result = s.instance.Run(ctx, at)
	if s.result.Replace != "" {
		_ = s.Close(ctx)
	}
	if s.ran != nil {
		s.ran(&s.result)
	}
	outcome := s.result.Outcome
	s.result = Result{}
	return outcome
}

// startFailed returns the outcome for a sandbox that could not be created; it
// is the worker's failure unless the attempt was stopped.
func startFailed(ctx context.Context, at *hostcall.Attempt, err error) jobhost.Outcome {
	if ctx.Err() != nil {
		return at.Stopped(ctx)
	}
	message := err.Error()
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		message = e.Message // without its cause, which is for operators
		if e.Hint != "" {
			message += "; " + e.Hint
		}
	}
	return at.Failure(jobhost.FailStart, jobhost.CategorySystem, "make a sandbox: "+message)
}

// Close frees the instance. The sandbox can be used again.
func (s *Sandbox) Close(ctx context.Context) error {
	if s.instance == nil {
		return nil
	}
	instance := s.instance
	s.instance = nil
	return instance.Close(ctx)
}
