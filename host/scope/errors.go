package scope

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrAborted is the reason when a boundary is cancelled because its op lost.
	ErrAborted = errors.New("aborted")
	// ErrEnded is the reason with which the context of a scope ends if it neither
	// was cancelled nor failed.
	ErrEnded = errors.New("scope has ended")
	// ErrGoexit is the failure of a goroutine, body or finaliser that ended itself
	// with [runtime.Goexit].
	ErrGoexit = errors.New("ended by runtime.Goexit")
)

var ended = &Cancelled{Reason: ErrEnded}

// Cancelled is a cancellation as an error. It wraps [context.Canceled] and its
// reason.
type Cancelled struct {
	Scope  string // the name of the scope where the cancellation began
	Reason error
}

func (c *Cancelled) Error() string {
	if c.Scope == "" {
		return fmt.Sprintf("cancelled: %v", c.Reason)
	}
	return fmt.Sprintf("scope %s cancelled: %v", c.Scope, c.Reason)
}

// Unwrap returns what errors.Is should find.
func (c *Cancelled) Unwrap() []error { return []error{context.Canceled, c.Reason} }

// PanicError is a panic turned into an error.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // of the goroutine that panicked, as [runtime/debug.Stack] writes it
}

func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Reason says why a scope no longer admits anything.
type Reason string

// The reasons, in order of precedence.
const (
	ReasonJoining   Reason = "joining" // its join has begun, or is over
	ReasonFailed    Reason = "failed"
	ReasonCancelled Reason = "cancelled"
	ReasonClosed    Reason = "closed" // by Close
)

// AdmissionError is the error of a scope that no longer admits anything.
type AdmissionError struct {
	Scope  string // the name of the rejecting scope
	What   string // "goroutine", "child" or "finaliser"; empty = only the state was queried
	Name   string // of the goroutine or child
	Reason Reason
	// Cause is the scope's [*Cancelled] if it has failed or was cancelled,
	// whatever the reason; otherwise the reason given to Close, or nil.
	Cause error
}

func (e *AdmissionError) Error() string {
	what := e.What
	if e.Name != "" {
		what += " " + e.Name
	}
	switch {
	case what == "" && e.Cause != nil:
		return fmt.Sprintf("scope %s is %s: %v", e.Scope, e.Reason, e.Cause)
	case what == "":
		return fmt.Sprintf("scope %s is %s", e.Scope, e.Reason)
	case e.Cause != nil:
		return fmt.Sprintf("scope %s is %s, %s not admitted: %v", e.Scope, e.Reason, what, e.Cause)
	}
	return fmt.Sprintf("scope %s is %s, %s not admitted", e.Scope, e.Reason, what)
}

// Unwrap returns the cause. So a rejection by a cancelled scope counts as
// cancellation when it escapes.
func (e *AdmissionError) Unwrap() error { return e.Cause }

// cancellation returns the Cancelled that err is or wraps, or nil.
func cancellation(err error) *Cancelled {
	c, _ := errors.AsType[*Cancelled](err)
	return c
}

// isCancellation reports whether err counts as cancellation in a scope that has,
// or has not, been cancelled, and whether it consists of nothing else.
func isCancellation(err error, cancelled bool) (is, purely bool) {
	if _, panicked := errors.AsType[*PanicError](err); panicked {
		return false, false
	}
	if cancellation(err) == nil && (!cancelled || !errors.Is(err, context.Canceled)) {
		return false, false
	}
	return true, onlyCancellation(err)
}

// onlyCancellation reports whether everything that err wraps is a cancellation.
func onlyCancellation(err error) bool {
	switch err := err.(type) { //nolint:errorlint // looks at one link of the chain at a time
	case *Cancelled:
		return true
	case interface{ Unwrap() []error }:
		for _, part := range err.Unwrap() {
			if !onlyCancellation(part) {
				return false
			}
		}
		return true
	case interface{ Unwrap() error }:
		if inner := err.Unwrap(); inner != nil {
			return onlyCancellation(inner)
		}
	}
	return errors.Is(err, context.Canceled)
}
