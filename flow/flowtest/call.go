package flowtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

// Func replaces a worker. A result of []byte or [json.RawMessage] is used unchanged,
// anything else as JSON, and nil means no data at all. An error fails the attempt,
// which is retried as the step says, unless the error is [Permanent].
type Func func(c *Call) (any, error)

// Call is an attempt of a task.
type Call struct {
	// Run is the run of the workflow: Run.ID is its id. For a nested workflow
	// it is the inner one.
	Run *Run
	// Step is the name of the step, and Worker that of the worker. Entry is empty for
	// the worker's own.
	Step, Worker, Entry string
	// Input is the payload.
	Input []byte
	// ContentType is that of the payload, if the step or its expression sets one.
	ContentType string
	// Task counts from 0 to Tasks − 1, and Attempt from 1.
	Task, Tasks, Attempt int
	// Fallback means that the worker replaces that of the step.
	Fallback bool

	took time.Duration
}

// JSON decodes the input. Input that can't be decoded into v fails the test.
func (c *Call) JSON(v any) {
	c.Run.kit.t.Helper()
	if err := json.Unmarshal(c.Input, v); err != nil {
		c.Run.kit.fatalf("the input of step %s is not a %T: %v: %s", c.Step, v, err, clip(c.Input))
	}
}

// Takes adds to the duration of the attempt. The function itself is called at its beginning.
// An attempt that takes longer than the step's timeout fails then.
func (c *Call) Takes(d time.Duration) { c.took += max(d, 0) }

// Permanent marks an error after which there is no other attempt.
func Permanent(err error) error {
	return Fail(jobhost.Failure{Category: jobhost.CategoryBusiness, Message: err.Error()})
}

// Retry marks an error after which the next attempt waits for a time, unless the step's
// retries make it wait longer.
func Retry(err error, after time.Duration) error {
	f := failureOf(err)
	return &failure{f, after}
}

// Fail returns an error with everything that a failed attempt can report. Code, category and
// severity default to "failed", unknown and error. Retryable is used as given.
func Fail(f jobhost.Failure) error {
	if f.Code == "" {
		f.Code = jobhost.FailWorker
	}
	if f.Category == "" {
		f.Category = jobhost.CategoryUnknown
	}
	if f.Severity == "" {
		f.Severity = jobhost.SeverityError
	}
	return &failure{Failure: f}
}

type failure struct {
	jobhost.Failure
	after time.Duration // at least, before the next attempt
}

// Error implements error.
func (f *failure) Error() string { return f.Message }

func failureOf(err error) jobhost.Failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.Failure
	}
	return jobhost.Failure{
		Code: jobhost.FailWorker, Category: jobhost.CategoryUnknown, Severity: jobhost.SeverityError, Message: err.Error(), Retryable: true,
	}
}

func clip(data []byte) string {
	const most = 200
	if len(data) > most {
		return fmt.Sprintf("%q… (%d bytes)", data[:most], len(data))
	}
	return fmt.Sprintf("%q", data)
}
