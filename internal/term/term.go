// Package term names the end of a term, for packages that know nothing of each other: the database that notices it, and
// the stores and the queue that act on it.
package term

import (
	"time"

	"github.com/jobhost/jobhost"
)

// ErrOver is why a store takes no more changes: another host leads, or may.
var ErrOver error = &jobhost.Error{
	Code:       jobhost.CodeUnavailable,
	Message:    "the term is over: another host leads, or may lead",
	Hint:       "send it again, to the host that leads; with an id, submitting again is safe",
	RetryAfter: time.Second,
}

// ErrUnknown is why it is unknown whether a change was made: the term ended while it was under way. It is an [ErrOver] too.
var ErrUnknown error = unknown{&jobhost.Error{
	Code:    jobhost.CodeUnavailable,
	Message: "the term ended before the outcome was known: the request may have been carried out or not",
	Hint:    "look, or repeat it if that does no harm: a submit with an id of yours can be repeated",
}}

type unknown struct{ err *jobhost.Error }

func (u unknown) Error() string { return u.err.Error() }

// Unwrap returns what is to be told.
func (u unknown) Unwrap() error { return u.err }

// Is makes it an [ErrOver].
func (u unknown) Is(target error) bool { return target == ErrOver }
