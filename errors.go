package jobhost

import (
	"errors"
	"fmt"
	"time"
)

// Code says what kind of error an [Error] is. Callers branch on it, never on
// text.
type Code string

// The codes, with the HTTP status that the API gives them.
const (
	CodeInvalid     Code = "invalid"     // 400: the request can never succeed as it is
	CodeDenied      Code = "denied"      // 403: not allowed
	CodeNotFound    Code = "not_found"   // 404: no such job, worker, …
	CodeConflict    Code = "conflict"    // 409: exists with other content, or is in a state that forbids this
	CodeTooLarge    Code = "too_large"   // 413: over a size limit
	CodeExhausted   Code = "exhausted"   // 429: a queue is full; try again after RetryAfter
	CodeInternal    Code = "internal"    // 500: a fault of the host
	CodeDamaged     Code = "damaged"     // 500: stored data is not what was written: the disk, or another program, changed it
	CodeUnavailable Code = "unavailable" // 503: the host is starting, draining or cannot write
)

// Fields that callers branch on.
const (
	FieldDisk  = "disk"  // a disk is low on space
	FieldStart = "start" // the host is starting and will take jobs soon
	FieldToken = "token" // the host requires a token, or a different one
	FieldURL   = "url"   // there is no host at the address
)

// Error is an error written for people: what was wrong, where, and what to do
// about it. Clients see Message and Hint; operators also see Cause.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Field is the option at fault, such as "worker" or "retry.max".
	Field string `json:"field,omitempty"`
	// Hint says what to do, if there is something the reader can do.
	Hint string `json:"hint,omitempty"`
	// RetryAfter says when to try again, with [CodeExhausted] and [CodeUnavailable]; 0 = unknown.
	RetryAfter time.Duration `json:"-"`
	// Cause is for operators only.
	Cause error `json:"-"`
}

// Invalid returns an error of code [CodeInvalid] about a field, with a hint on
// what to do; both may be empty. The message is formatted.
func Invalid(field, hint, format string, args ...any) error {
	return &Error{Code: CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Error returns the message with its cause.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return fmt.Sprintf("%s: %v", e.Message, e.Cause)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, &Error{Code: c}) true for every error of that code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Code == e.Code
}

// CodeOf returns the code of the first [Error] in err's tree, [CodeInternal]
// when there is none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// HintOf returns the hint of the first [Error] in err's tree, or "".
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}
