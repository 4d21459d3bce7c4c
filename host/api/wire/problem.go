package wire

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

// Problem is an error as RFC 9457 has it, with the members of
// [jobhost.Error]. The cause of an error is never part of it.
type Problem struct {
	// Type is a URN that names the kind of problem: typePrefix and Code.
	Type  string `json:"type"`
	Title string `json:"title"`
	// Status is that of the response.
	Status int          `json:"status"`
	Detail string       `json:"detail"`
	Code   jobhost.Code `json:"code"`
	Field  string       `json:"field,omitempty"`
	Hint   string       `json:"hint,omitempty"`
	// RetryAfter is when to try again; the header Retry-After is the same in whole seconds.
	RetryAfter jobhost.Duration `json:"retry_after,omitempty"`
	// FiberEnded says that it is the end of a fiber: the error is [jobhost.ErrFiberEnded].
	FiberEnded bool `json:"fiber_ended,omitempty"`
	// Instance is a URN that finds the cause of the problem in the host's log.
	Instance string `json:"instance,omitempty"`
	// Errors are all faults that were found, when there are more than one.
	Errors []Fault `json:"errors,omitempty"`
}

// Fault is one of several things that are wrong with a request.
type Fault struct {
	Detail string       `json:"detail"`
	Code   jobhost.Code `json:"code"`
	Field  string       `json:"field,omitempty"`
	Hint   string       `json:"hint,omitempty"`
}

const typePrefix = "urn:jobhost:problem:"

// StatusOf returns the HTTP status of a code.
func StatusOf(code jobhost.Code) int {
	switch code {
	case jobhost.CodeInvalid:
		return http.StatusBadRequest
	case jobhost.CodeDenied:
		return http.StatusForbidden
	case jobhost.CodeNotFound:
		return http.StatusNotFound
	case jobhost.CodeConflict:
		return http.StatusConflict
	case jobhost.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case jobhost.CodeExhausted:
		return http.StatusTooManyRequests
	case jobhost.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// NewProblem describes an error for strangers. Of an error that has no
// [jobhost.Error] in it only that it happened is said.
func NewProblem(err error) *Problem {
	found := faults(nil, err)
	if len(found) == 0 {
		found = append(found, &jobhost.Error{
			Code:    jobhost.CodeInternal,
			Message: "something went wrong inside of the host",
			Hint:    "the host's log says more",
		})
	}
	first := found[0]
	p := &Problem{
		Type:       typePrefix + string(first.Code),
		Status:     StatusOf(first.Code),
		Title:      title(first.Code),
		Detail:     first.Message,
		Code:       first.Code,
		Field:      first.Field,
		Hint:       first.Hint,
		RetryAfter: jobhost.Duration(max(first.RetryAfter, 0)),
		FiberEnded: errors.Is(err, jobhost.ErrFiberEnded),
	}
	if len(found) > 1 {
		for _, e := range found {
			p.Errors = append(p.Errors, Fault{Detail: e.Message, Code: e.Code, Field: e.Field, Hint: e.Hint})
		}
	}
	return p
}

func title(code jobhost.Code) string { return strings.ReplaceAll(string(code), "_", " ") }

// faults appends the errors for people in err's tree, outermost first.
func faults(list []*jobhost.Error, err error) []*jobhost.Error {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here, one level at a time
	case nil:
	case *jobhost.Error:
		list = append(list, e)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			list = faults(list, inner)
		}
	default:
		list = faults(list, errors.Unwrap(err))
	}
	return list
}

// Err returns the problem as the error that it was made from, as far as it says.
func (p *Problem) Err() error {
	first := &jobhost.Error{
		Code: p.Code, Message: p.Detail, Field: p.Field, Hint: p.Hint,
		RetryAfter: time.Duration(p.RetryAfter),
	}
	if p.FiberEnded {
		first.Cause = jobhost.ErrFiberEnded
	}
	if len(p.Errors) < 2 {
		return first
	}
	errs := []error{first}
	for _, f := range p.Errors[1:] {
		errs = append(errs, &jobhost.Error{Code: f.Code, Message: f.Detail, Field: f.Field, Hint: f.Hint})
	}
	return errors.Join(errs...)
}
