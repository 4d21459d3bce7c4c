package hostcall

import (
	"fmt"

	"github.com/jobhost/jobhost"
)

// AppendOutput adds to the result and does not retain p. Beyond
// [Limits].OutputBytes it adds nothing and returns [ErrLimit]; an attempt that
// then ends without reporting a failure fails with [jobhost.FailOutputTooLarge],
// since its result would be incomplete. Output that could not be stored
// elsewhere is [ErrIO], and the attempt fails as well.
func (a *Attempt) AppendOutput(p []byte) Errno {
	if !a.fits(len(p)) {
		return ErrLimit
	}
	if a.spills(len(p)) {
		a.spillOut(p)
		if a.lost != nil {
			return ErrIO
		}
		return OK
	}
	a.output = append(a.output, p...)
	return OK
}

func (a *Attempt) fits(n int) bool {
	if n <= a.Limits.OutputBytes-len(a.output)-a.spilled {
		return true
	}
	a.overflow = true
	return false
}

// Emit publishes data on the output hub at once. A message may be as large as a
// result, otherwise the error is [ErrLimit]. The hub decides what happens to it
// if there are no subscribers or slow ones.
func (a *Attempt) Emit(data []byte) Errno {
	if len(data) > a.Limits.OutputBytes {
		return ErrLimit
	}
	if a.Services != nil {
		a.Services.Emit(a, data)
	}
	return OK
}

// Outcome returns the outcome of an attempt whose entry returned normally: what
// the guest reported by Fail if it did, else success with everything that was
// appended followed by result, which is copied. A result over the limit is a
// failure. One that was written to [Contents] is not in the outcome.
func (a *Attempt) Outcome(result []byte) jobhost.Outcome {
	if outcome, failed := a.Failed(); failed {
		return outcome
	}
	if a.overflow || !a.fits(len(result)) {
		return a.Failure(jobhost.FailOutputTooLarge, jobhost.CategoryResource,
			fmt.Sprintf("the result is over the limit of %d bytes", a.Limits.OutputBytes))
	}
	outcome := jobhost.Outcome{Kind: jobhost.OutcomeSucceeded}
	if a.spills(len(result)) {
		a.spillOut(result)
		if a.lost != nil {
			return a.lostOutcome()
		}
		return outcome
	}
	if n := len(a.output) + len(result); n > 0 {
		outcome.Output = make([]byte, n)
		copy(outcome.Output[copy(outcome.Output, a.output):], result)
	}
	return outcome
}

// Failed returns the outcome that the guest requested by Fail, and whether it
// did. An attempt whose payload or result was lost has failed in any case.
func (a *Attempt) Failed() (jobhost.Outcome, bool) {
	switch {
	case a.lost != nil:
		return a.lostOutcome(), true
	case a.failure != nil:
		return jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: a.failure}, true
	case a.snooze > 0:
		return jobhost.Outcome{Kind: jobhost.OutcomeSnoozed, Snooze: a.snooze}, true
	}
	return jobhost.Outcome{}, false
}

// Failure returns the outcome of an attempt that the host itself declares a
// failure. The times are left to the caller.
func (a *Attempt) Failure(code string, category jobhost.Category, message string) jobhost.Outcome {
	return jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: &jobhost.Failure{
		Code:      code,
		Category:  category,
		Severity:  jobhost.SeverityError,
		Message:   message,
		Retryable: category.Retryable(),
		Task:      a.Task,
		Attempt:   a.Number,
	}}
}
