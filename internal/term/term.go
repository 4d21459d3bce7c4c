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
