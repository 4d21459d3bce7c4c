package fiber

import (
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

// ErrInputClosed is the end of a fiber's input: it was interrupted or has ended, and all
// earlier messages have been received.
var ErrInputClosed = errors.New("the input is closed")

// Codes of the failures of fibers that were killed.
const (
	FailInterrupted = "interrupted"  // on request
	FailStopped     = "host_stopped" // the host stopped
)

// errGraceOver ends the context of a body that was interrupted and did not end in time.
var errGraceOver = errors.New("the fiber was interrupted and its grace is over")

func errNotFound(id string) error {
	return &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("there is no fiber %s", id)}
}

// errOver is the error for a fiber that has ended but is still remembered.
func errOver(code jobhost.Code, end *jobhost.Fiber) error {
	return &jobhost.Error{
		Code: code, Message: fmt.Sprintf("the fiber %s has ended (%s)", end.ID, end.Status),
		Hint: "it can be started again", Cause: jobhost.ErrFiberEnded,
	}
}

// errAnother is the error for a fiber if only a later one with its id exists.
func errAnother(id string) error {
	return &jobhost.Error{
		Code: jobhost.CodeNotFound, Message: fmt.Sprintf("the fiber %s that is meant has ended, and is not the one that was started since", id),
		Cause: jobhost.ErrFiberEnded,
	}
}

// errEnding is the error of a fiber that accepts no more input because it is ending.
func errEnding(id string) error {
	return &jobhost.Error{
		Code: jobhost.CodeNotFound, Message: fmt.Sprintf("the fiber %s is ending", id),
		Hint: "it can be started again", Cause: jobhost.ErrFiberEnded,
	}
}

func errPaused(id string) error {
	return &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf("the fiber %s is paused", id), Hint: "resume it first"}
}

func errFull(id string, messages, bytes int) error {
	return &jobhost.Error{
		Code: jobhost.CodeExhausted, RetryAfter: time.Second,
		Message: fmt.Sprintf("the input of the fiber %s is full: %d messages with %d bytes wait", id, messages, bytes),
		Hint:    "wait for room, or send less",
	}
}

func errTooLarge(n int) error {
	return &jobhost.Error{
		Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("the message has %d bytes; there may be %d", n, jobhost.MaxFiberMessage),
	}
}

func errUnlike(id string) error {
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Field: "id", Message: fmt.Sprintf("a fiber %s is there that was started otherwise", id),
		Hint: "interrupt it first, or use another id",
	}
}

func errTooMany(there int) error {
	return &jobhost.Error{
		Code: jobhost.CodeExhausted, RetryAfter: time.Second, Message: fmt.Sprintf("there are %d fibers already, which is as many as may be", there),
		Hint: "interrupt one that isn't needed, or raise max_fibers",
	}
}

func errStopping(cause error) error {
	return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "the host is stopping and starts no fibers", Cause: cause}
}

// errUnbegun is the error of a start whose fiber was interrupted before it had a permit.
func errUnbegun(id string) error {
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Message: fmt.Sprintf("the fiber %s was interrupted before it began", id), Cause: jobhost.ErrFiberEnded,
	}
}

// reason returns the error that ends the subscriptions to a fiber.
func reason(end *jobhost.Fiber) error {
	if end.Status == jobhost.FiberCompleted {
		return jobhost.ErrFiberEnded
	}
	message := "the fiber was killed"
	if end.Status == jobhost.FiberFailed {
		message = "the fiber has failed"
	}
	if end.Failure != nil {
		message += ": " + end.Failure.Message
	}
	return &jobhost.Error{Code: jobhost.CodeNotFound, Message: message, Cause: jobhost.ErrFiberEnded}
}
