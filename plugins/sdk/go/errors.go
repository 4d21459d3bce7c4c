package jobhost

import (
	"errors"
	"strconv"
	"time"
)

// Errno is why the host could not do what was asked. The errors of this package
// wrap it: errors.Is(err, jobhost.ErrLimit).
type Errno int32

// The errnos; the numbers are those of the ABI.
const (
	ErrNotFound Errno = -1
	ErrDenied   Errno = -2 // not granted in the manifest
	ErrStopped  Errno = -3 // the attempt is cancelled or past its deadline
	ErrLimit    Errno = -4 // a limit was reached
	ErrInvalid  Errno = -5 // an argument is invalid
	ErrIO       Errno = -6
	ErrClosed   Errno = -7
	ErrConflict Errno = -8
)

var errnoTexts = [...]string{
	1: "not found", 2: "not granted", 3: "cancelled or past the deadline", 4: "over the limit",
	5: "invalid argument", 6: "I/O error", 7: "closed", 8: "conflict",
}

// Error describes the errno in a few words.
func (e Errno) Error() string {
	if n := -int(e); n > 0 && n < len(errnoTexts) {
		return errnoTexts[n]
	}
	return "errno " + strconv.Itoa(int(e))
}

// callError says which call failed with the errno.
type callError struct {
	what  string
	errno Errno
}

func (e *callError) Error() string { return e.what + ": " + e.errno.Error() }
func (e *callError) Unwrap() error { return e.errno }

// failed returns an error for the result of a call; nil if it succeeded.
func failed(what string, e Errno) error {
	if e >= 0 {
		return nil
	}
	return &callError{what, e}
}

var errNoHandler = errors.New("the worker has no handler: call jobhost.Handle in an init function, main doesn't run")

// Category groups failures by what they mean for the next attempt.
type Category string

// The categories. The host turns anything else into unknown.
const (
	Validation Category = "validation" // the input can never succeed
	Timeout    Category = "timeout"    // something took too long
	Network    Category = "network"    // something remote did not answer
	Resource   Category = "resource"   // a limit was reached
	Business   Category = "business"   // the worker's own rules say no
	System     Category = "system"     // a fault of the worker
	Unknown    Category = "unknown"
)

// Severity says how urgently people should be notified.
type Severity string

// The severities. The host turns anything else into error.
const (
	SeverityCritical Severity = "critical"
	SeverityError    Severity = "error"
	SeverityWarning  Severity = "warning"
	SeverityInfo     Severity = "info"
)

// Failure is an error with details for people and retry policies:
//
//	return nil, &jobhost.Failure{Err: err, Code: "no_quota", Category: jobhost.Resource}
//
// Everything but Err is optional. It may be wrapped: the message is that of the
// whole error, the rest is taken from the first Failure in its tree.
type Failure struct {
	Err error
	// Code is short and stable: 1 to 64 of A-Z a-z 0-9 . _ -; empty = "failed".
	Code     string
	Category Category // empty = Unknown
	Severity Severity // empty = SeverityError
	// Context is kept with the failure, up to 16 KiB in all.
	Context map[string]string
	// Permanent = no further attempt.
	Permanent bool
}

// Error returns the text of Err, or the code if there is none.
func (f *Failure) Error() string {
	if f.Err == nil {
		return f.Code
	}
	return f.Err.Error()
}

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// Permanent marks an error as one that no further attempt can cure: the task is
// dead at once. The details of a [Failure] in err are kept. nil stays nil.
func Permanent(err error) error { return mark(err, true) }

// Retry marks an error as temporary, as all errors are unless marked otherwise.
// nil stays nil.
func Retry(err error) error { return mark(err, false) }

func mark(err error, permanent bool) error {
	if err == nil {
		return nil
	}
	marked := Failure{}
	if f, ok := errors.AsType[*Failure](err); ok {
		marked = *f
	}
	marked.Err, marked.Permanent = err, permanent
	return &marked
}

// SnoozeError asks for the task to run again After a while; see [Snooze].
type SnoozeError struct{ After time.Duration }

// Error says for how long.
func (s *SnoozeError) Error() string { return "snooze for " + s.After.String() }

// Snooze is returned by a handler to run again after d, in whole milliseconds
// and at least one; the attempt doesn't count.
func Snooze(d time.Duration) error { return &SnoozeError{d} }
