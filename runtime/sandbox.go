package runtime

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Sandbox keeps one instance of a plugin for one slot of a pool: it makes the
// instance when it is first needed and replaces it when it broke. One
// goroutine uses it at a time.
type Sandbox struct {
	plugin   Plugin
	instance Instance            // nil until needed, and after it broke
	replaced func(reason string) // told of every replacement; may be nil
}

// NewSandbox returns an empty sandbox. replaced is called each time a broken
// instance is thrown away, with the host's code of the failure that broke it,
// [jobhost.FailWorker] for the guest's own codes, or the name of another
// outcome; it may be nil.
func NewSandbox(plugin Plugin, replaced func(reason string)) *Sandbox {
	return &Sandbox{plugin: plugin, replaced: replaced}
}

// Run runs one attempt. When no instance can be made the outcome is a failure
// with code [jobhost.FailStart].
func (s *Sandbox) Run(ctx context.Context, at *hostcall.Attempt) jobhost.Outcome {
	if s.instance == nil {
		instance, err := s.plugin.Instantiate(ctx)
		if err != nil {
			return startFailed(ctx, at, err)
		}
		s.instance = instance
	}
	result := s.instance.Run(ctx, at)
	if result.Broken {
		_ = s.Close(ctx)
		if s.replaced != nil {
			s.replaced(reason(&result.Outcome))
		}
	}
	return result.Outcome
}

// startFailed makes an outcome of a sandbox that could not be made; that is the
// worker's failure only when nobody stopped it.
func startFailed(ctx context.Context, at *hostcall.Attempt, err error) jobhost.Outcome {
	if ctx.Err() != nil {
		return at.Stopped(ctx)
	}
	outcome := at.Failure(jobhost.FailStart, jobhost.CategorySystem, fmt.Sprintf("make a sandbox: %v", err))
	if hint := jobhost.HintOf(err); hint != "" {
		outcome.Failure.Message += "; " + hint
	}
	return outcome
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

// reason names what broke an instance, out of a small set: a code that the
// guest chose itself could be anything.
func reason(outcome *jobhost.Outcome) string {
	if outcome.Failure == nil {
		return outcome.Kind.String()
	}
	switch code := outcome.Failure.Code; code {
	case jobhost.FailTrap, jobhost.FailExit, jobhost.FailTimeout, jobhost.FailBadResult, jobhost.FailInternal:
		return code
	}
	return jobhost.FailWorker
}
