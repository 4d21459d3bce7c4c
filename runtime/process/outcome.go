package process

import (
	"context"
	"slices"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
	"github.com/jobhost/jobhost/runtime"
)

// outcome returns the outcome of an attempt. A result that arrived in time counts, even if the process
// has died since.
func (r *run) outcome(ctx context.Context, result *protocol.Result, why ending) jobhost.Outcome {
	switch why {
	case byDeadline:
		return r.at.TimedOut()
	case byContext:
		return r.at.Stopped(ctx)
	}
	if result == nil {
		return jobhost.Outcome{} // the process has died
	}
	if outcome, failed := r.at.Failed(); failed {
		return outcome // the payload or the result was lost
	}
	switch o := result.GetOutcome().(type) {
	case *protocol.Result_Output:
		return r.at.Outcome(o.Output)
	case *protocol.Result_Failure:
		return r.at.Declare(&jobhost.Failure{
			Code: o.Failure.GetCode(), Category: jobhost.Category(o.Failure.GetCategory()), Severity: jobhost.Severity(o.Failure.GetSeverity()),
			Message: o.Failure.GetMessage(), Context: o.Failure.GetContext(), Stack: o.Failure.GetStack(), Retryable: !o.Failure.GetPermanent(),
		})
	case *protocol.Result_SnoozeMs:
		return r.at.Snoozed(o.SnoozeMs)
	case *protocol.Result_Stopped:
		switch {
		case r.at.Over(ctx) && ctx.Err() != nil:
			return r.at.Stopped(ctx)
		case r.at.Over(ctx):
			return r.at.TimedOut()
		case r.at.Cancelled():
			return jobhost.Outcome{Kind: jobhost.OutcomeCancelled}
		}
		return r.at.Failure("stopped", jobhost.CategorySystem, "the worker says that it was stopped, but nobody has stopped it")
	}
	return r.at.Outcome(nil) // an empty result may be absent
}

// reason parses why a sandbox was replaced.
func reason(text string) runtime.Reason {
	if why := runtime.Reason(text); text == "" || slices.Contains(runtime.Reasons(), why) {
		return why
	}
	return runtime.ReplacedInternal
}
