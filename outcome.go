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
	// OutcomeFailed: Failure says why; whether it is tried again is for the retry policy to say.
	OutcomeFailed
	// OutcomeSnoozed: run again after Snooze; the attempt does not count.
	OutcomeSnoozed
	// OutcomeCancelled: the attempt was stopped because the job was cancelled.
	OutcomeCancelled
	// OutcomeReturned: the attempt was stopped by the host for its own reasons (a shutdown, say) and does not count.
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

// Outcome is what became of an attempt.
type Outcome struct {
	Kind OutcomeKind
	// Output is the result, with OutcomeSucceeded. It belongs to the receiver.
	Output []byte
	// Failure is set with OutcomeFailed.
	Failure *Failure
	// RetryAfter is how long the next attempt waits at least, with OutcomeFailed;
	// 0 = as the retry policy says.
	RetryAfter time.Duration
	// Snooze is how long to wait, with OutcomeSnoozed.
	Snooze time.Duration
	// Fuel is the work that the attempt cost, about one unit for each pass of a
	// loop and each call of the guest: docs/sandbox.md has it exactly. It is the
	// same each time for the same work. 0 = it wasn't counted.
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

// Severity says how loudly to tell people.
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
	// Code is short and stable: "trap", "timeout", or the worker's own.
	Code     string   `json:"code"`
	Category Category `json:"category"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	// Context is what the worker added, as JSON text of an object; may be empty.
	Context string `json:"context,omitempty"`
	// Stack is the guest's, innermost frame first, where there is one.
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
	FailTimeout        = "timeout"          // the attempt ran longer than it may
	FailFuel           = "out_of_fuel"      // the guest used up its fuel
	FailMemory         = "out_of_memory"    // the guest trapped after it was refused more memory
	FailStack          = "stack_overflow"   // the guest's calls were nested too deeply
	FailOutputTooLarge = "output_too_large" // the result is over the limit
	FailBadResult      = "bad_result"       // the entry returned a place outside of its memory
	FailNoEntry        = "no_entry"         // the module has no such export
	FailCrash          = "crash"            // the process that it ran in has ended
	FailHostCrash      = "host_crash"       // the host itself ended while it ran
	FailStart          = "start_failed"     // no sandbox could be made
	FailInternal       = "internal"         // a fault of the host
	FailConflict       = "conflict"         // what the attempt's effects depend on was changed meanwhile
	FailLimit          = "limit"            // the attempt's effects are over a limit
	FailDeadline       = "deadline"         // the job's deadline passed while the task waited
	FailBreaker        = "breaker_open"     // a circuit breaker of its worker or step is open, and says to fail
	FailPayload        = "payload"          // the payload could not be read, or the result not be stored
	FailDamaged        = "damaged"          // what the store holds of the task is not what was written
	FailInputTooLarge  = "input_too_large"  // the payload doesn't fit into the worker's memory
	FailDenied         = "denied"           // a place that may not be reached
	FailWorker         = "failed"           // the worker said so and gave no code
)
