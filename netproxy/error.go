package netproxy

import (
	"errors"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/httpurl"
	"github.com/jobhost/jobhost/netproxy/guard"
)

// Kind is the kind of an [Error].
type Kind string

// The kinds.
const (
	KindHTTP     Kind = "http"     // the response has a status of 400 or more, which the request treats as an error
	KindRequest  Kind = "request"  // there is no response, or only an incomplete one
	KindRedirect Kind = "redirect" // redirects don't lead to a response
)

// Code says what went wrong. Callers branch on it, never on text.
type Code string

// The codes of errors of kind request.
const (
	CodeTimeout     Code = "timeout"            // no answer in time, or too slow
	CodeConnection  Code = "connection"         // the connection was refused, or broke
	CodeTLS         Code = "tls"                // no secure connection could be established
	CodeDNS         Code = "dns"                // the name could not be resolved
	CodeDenied      Code = "denied"             // the policy forbids the name or the address
	CodeTooLarge    Code = "response_too_large" // header or body of the response exceed a limit
	CodeProtocol    Code = "protocol"           // the server's answer is not valid HTTP, or uses it in an unsupported way
	CodeInvalid     Code = "invalid"            // the request can't be sent as it is
	CodeCancelled   Code = "cancelled"          // the caller gave up
	CodeExhausted   Code = "exhausted"          // no memory is left for bodies
	CodeBreakerOpen Code = "breaker_open"       // the destination failed too often recently
	CodeRateLimited Code = "rate_limited"       // its turn would come after its deadline
	CodeUnknown     Code = "unknown"
)

// The codes of the other kinds.
const (
	CodeClientError Code = "client_error" // http: the status is 400 to 499
	CodeServerError Code = "server_error" // http: the status is 500 or more
	CodeTooMany     Code = "too_many"     // redirect: more than the limit
	CodeRecursive   Code = "recursive"    // redirect: a loop
)

// Error says why there is no usable response to a request. Its JSON form is
// equivalent, except for the cause, which is for operators only.
type Error struct {
	Kind    Kind
	Code    Code
	Message string // for people; reveals nothing about the network behind the host
	// RequestID is the id of the request; after redirects that of the last hop, "id/2".
	RequestID string
	Method    string
	URL       string // of the last hop
	// Redirects are the URLs that led there, in order.
	Redirects []string
	Duration  time.Duration
	// Response is the server's response, with kind http.
	Response *Response
	// Args are those of the task's callback.
	Args []byte

	cause error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, which may reveal what clients should not know.
func (e *Error) Unwrap() error { return e.cause }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Code {
	case CodeTimeout, CodeConnection, CodeDNS, CodeExhausted, CodeBreakerOpen, CodeRateLimited, CodeServerError, CodeUnknown:
		return true
	}
	return false
}

// Category returns the category for a job that fails with this error.
func (e *Error) Category() jobhost.Category {
	switch e.Code {
	case CodeTimeout:
		return jobhost.CategoryTimeout
	case CodeConnection, CodeTLS, CodeDNS, CodeProtocol, CodeServerError, CodeBreakerOpen, CodeTooMany, CodeRecursive:
		return jobhost.CategoryNetwork
	case CodeTooLarge, CodeExhausted, CodeRateLimited:
		return jobhost.CategoryResource
	case CodeDenied, CodeInvalid, CodeClientError:
		return jobhost.CategoryValidation
	}
	return jobhost.CategoryUnknown
}

// fault is an error that has yet to become an [Error], which also knows the request.
type fault struct {
	kind    Kind // "" = request
	code    Code
	message string
	limit   string // that was exceeded; "" = none
	cause   error
	resp    *Response
}

func (f *fault) Error() string { return f.message }
func (f *fault) Unwrap() error { return f.cause }

// Reasons why a request's context ends.
var (
	errDeadline  = &fault{code: CodeTimeout, message: "no answer in time", limit: LimitTimeout}
	errStalled   = &fault{code: CodeTimeout, message: "the response stopped coming", limit: LimitIdle}
	errSlow      = &fault{code: CodeTimeout, message: "the response came too slowly", limit: LimitMinRate}
	errGoingAway = &fault{code: CodeConnection, message: "the server closes each connection before it answers"}
	errCancelled = &fault{code: CodeCancelled, message: "the request was cancelled"}
	errReleased  = &fault{code: CodeCancelled, message: "the response was closed"}
)

// Limits that a body can exceed.
var (
	errTooLarge = &fault{code: CodeTooLarge, message: "the response is too large", limit: LimitResponseBytes}
	errRatio    = &fault{code: CodeTooLarge, message: "the response grows too much when it is decoded", limit: LimitDecodeRatio}
	errFull     = &fault{code: CodeExhausted, message: "there is no memory left for the response", limit: LimitBuffered}
)

// Faults raised by destinations.
var (
	errBreakerOpen = &fault{code: CodeBreakerOpen, message: "the server failed too often lately; it is left alone for a while"}
	errRate        = &fault{code: CodeRateLimited, message: "its turn would come after the request's deadline", limit: LimitRate}
)

// faultOf classifies an error of a transport or a body. over is why the request's
// context ended, nil = it has not; it takes precedence over err, since it came first.
func faultOf(err, over error) *fault {
	if f, ok := errors.AsType[*fault](over); ok {
		return f
	}
	if over != nil {
		return &fault{code: errCancelled.code, message: errCancelled.message, cause: over} // by the caller
	}
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if e, ok := errors.AsType[*jobhost.Error](err); ok && e.Code == jobhost.CodeInvalid {
		return &fault{code: CodeInvalid, message: e.Message, cause: err}
	}
	what, message := guard.Explain(err)
	if what == guard.FaultConnection && strings.Contains(err.Error(), "malformed") { // net/http has no type for it
		return &fault{code: CodeProtocol, message: "the server's answer is not HTTP", cause: err}
	}
	f := &fault{code: Code(what), message: message, cause: err}
	if f.code == CodeTooLarge {
		f.limit = LimitHeaderBytes
	}
	return f
}

// urlFault returns message and hint of an error of httpurl.
func urlFault(err error) (message, hint string) {
	if e, ok := errors.AsType[*httpurl.Error](err); ok {
		return e.Message, e.Hint
	}
	return "this is not a URL", ""
}
