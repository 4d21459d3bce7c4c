package jobhost

import (
	"fmt"
	"time"
)

// OutcomeKind is how an attempt ended.
type OutcomeKind uint8

// The ways an attempt ends.
const (
	// OutcomeSucceeded: the task is done; Output is its result.
	OutcomeSucceeded OutcomeKind = iota + 1
	// OutcomeFailed: Failure says why; the retry policy decides whether there is another attempt.
	OutcomeFailed
	// OutcomeSnoozed: run again after Snooze; the attempt does not count.
	OutcomeSnoozed
	// OutcomeCancelled: the attempt was stopped because the job was cancelled.
	OutcomeCancelled
	// OutcomeReturned: the host stopped the attempt for its own reasons (a shutdown, say); the attempt does not
	// count.
	OutcomeReturned
)

var outcomeNames = [...]string{
	OutcomeSucceeded: "succeeded", OutcomeFailed: "failed", OutcomeSnoozed: "snoozed",
	OutcomeCancelled: "cancelled", OutcomeReturned: "returned",
}

// String returns the name in lower case.
func (k OutcomeKind) String() string {
	if k >= OutcomeSucceeded && int(k) < len(outcomeNames) {
		return outcomeNames[k]
	}
	return fmt.Sprintf("outcome(%d)", uint8(k))
}

// Outcome is the result of an attempt.
type Outcome struct {
	Kind OutcomeKind
	// Output is the result, with OutcomeSucceeded. The receiver owns it.
	Output []byte
	// Failure is set with OutcomeFailed.
	Failure *Failure
	// RetryAfter is the minimum delay before the next attempt, with
	// OutcomeFailed; 0 = as the retry policy says.
	RetryAfter time.Duration
	// Snooze is how long to wait, with OutcomeSnoozed.
	Snooze time.Duration
	// Fuel is the work that the attempt cost, about one unit for each loop
	// iteration and each call in the guest: docs/sandbox.md defines it exactly.
	// The same work always costs the same. 0 = it wasn't counted.
	Fuel int64
}

// Category groups failures by what they mean for the next attempt.
type Category string

// The categories. Validation and Business are not retried by default.
const (
	CategoryValidation Category = "validation" // the input can never succeed
	CategoryTimeout    Category = "timeout"    // the attempt ran out of time
	CategoryNetwork    Category = "network"    // something remote did not answer
	CategoryResource   Category = "resource"   // a limit was reached
	CategoryBusiness   Category = "business"   // the worker's own rules say no
	CategorySystem     Category = "system"     // a crash, a trap, a fault of the host
	CategoryUnknown    Category = "unknown"
)

// Categories lists all categories.
func Categories() []Category {
	return []Category{
		CategoryValidation, CategoryTimeout, CategoryNetwork, CategoryResource,
		CategoryBusiness, CategorySystem, CategoryUnknown,
	}
}

// Retryable reports whether failures of this category are tried again by default.
func (c Category) Retryable() bool {
	return c != CategoryValidation && c != CategoryBusiness
}

// Severity says how urgently people should be notified.
type Severity string

// The severities.
const (
	SeverityCritical Severity = "critical"
	SeverityError    Severity = "error"
	SeverityWarning  Severity = "warning"
	SeverityInfo     Severity = "info"
)

// Severities lists all severities, the worst first.
func Severities() []Severity {
	return []Severity{SeverityCritical, SeverityError, SeverityWarning, SeverityInfo}
}

// Failure is the record of a failed attempt.
type Failure struct {
	// Code is short and stable: "trap", "timeout", or one of the worker's own.
	Code     string   `json:"code"`
	Category Category `json:"category"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	// Context is what the worker added, as a JSON object in text form; may be empty.
	Context string `json:"context,omitempty"`
	// Stack is the guest's, innermost frame first, if available.
	Stack     string `json:"stack,omitempty"`
	Retryable bool   `json:"retryable"`
	// Task and Attempt say which attempt failed; attempts count from 1.
	Task      int       `json:"task"`
	Attempt   int       `json:"attempt"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
}

// Codes of failures that the host itself records.
const (
	FailTrap           = "trap"             // the guest executed an illegal operation
	FailExit           = "exit"             // the guest ended itself with an exit code
	FailTimeout        = "timeout"          // the attempt exceeded its time limit
	FailFuel           = "out_of_fuel"      // the guest used up its fuel
	FailMemory         = "out_of_memory"    // the guest trapped after it was refused more memory
	FailStack          = "stack_overflow"   // the guest's calls were nested too deeply
	FailOutputTooLarge = "output_too_large" // the result is over the limit
	FailBadResult      = "bad_result"       // the entry returned a location outside its memory
	FailNoEntry        = "no_entry"         // the module has no such export
	FailCrash          = "crash"            // the process that it ran in ended
	FailHostCrash      = "host_crash"       // the host itself ended while it ran
	FailStart          = "start_failed"     // no sandbox could be created
	FailInternal       = "internal"         // a fault of the host
	FailConflict       = "conflict"         // something that the attempt's effects depend on was changed before they were applied
	FailLimit          = "limit"            // the attempt's effects are over a limit
	FailDeadline       = "deadline"         // the job's deadline passed while the task waited
	FailBreaker        = "breaker_open"     // a circuit breaker of its worker or step is open, with when_open = fail
	FailPayload        = "payload"          // the payload could not be read, or the result could not be stored
	FailDamaged        = "damaged"          // what the store holds of the task is not what was written
	FailInputTooLarge  = "input_too_large"  // the payload doesn't fit into the worker's memory
	FailDenied         = "denied"           // a destination that may not be reached
	FailWorker         = "failed"           // the worker reported a failure without a code
)
