package jobhost

import "strconv"

// Reason is why there was no response, as one of the ABI's words. It is an
// error, for errors.Is(err, jobhost.ReasonTimeout).
type Reason string

// The reasons. A newer host may have others.
const (
	ReasonDenied      Reason = "denied"     // the worker may not reach the destination, or a redirect's
	ReasonTimeout     Reason = "timeout"    // no answer in time, or too slow
	ReasonDNS         Reason = "dns"        // the name is unknown
	ReasonConnection  Reason = "connection" // no connection, or it broke
	ReasonTLS         Reason = "tls"        // no secure connection
	ReasonProtocol    Reason = "protocol"   // the answer is not HTTP
	ReasonTooLarge    Reason = "response_too_large"
	ReasonTooMany     Reason = "too_many"     // redirects
	ReasonRecursive   Reason = "recursive"    // a redirect loop
	ReasonBreakerOpen Reason = "breaker_open" // the server failed too often recently
	ReasonRateLimited Reason = "rate_limited" // its turn would come too late
	ReasonExhausted   Reason = "exhausted"    // the host has no room
	ReasonInvalid     Reason = "invalid"      // the request can't be sent as it is
	ReasonCancelled   Reason = "cancelled"    // the attempt or the host stops
)

// Error returns the word.
func (r Reason) Error() string { return string(r) }

// ResponseError means that there was no response. [errors.Is] recognizes it by
// its Reason, and by an [Errno]: [ErrDenied], [ErrInvalid], [ErrStopped],
// [ErrLimit] for what is too large or too much, otherwise [ErrIO].
//
// A handler may return it unchanged. The failure then has the reason as its
// code and a matching category, and is permanent if another attempt would end
// the same way.
type ResponseError struct {
	Reason Reason
	// Message is for people.
	Message string
	// Request is method and URL without its query; empty in a [Reply].
	Request string
}

// Error says which request it was and what happened.
func (e *ResponseError) Error() string {
	message := e.Message
	if message == "" {
		message = string(e.Reason)
	}
	if e.Request == "" {
		return message
	}
	return e.Request + ": " + message
}

// Timeout reports whether the time ran out, like that of [net.Error].
func (e *ResponseError) Timeout() bool { return e.Reason == ReasonTimeout }

// Retryable reports whether the same request may succeed later.
func (e *ResponseError) Retryable() bool {
	switch e.Reason {
	case ReasonDenied, ReasonInvalid, ReasonTLS, ReasonProtocol, ReasonTooLarge, ReasonTooMany, ReasonRecursive:
		return false
	}
	return true
}

// Is implements the interface of [errors.Is].
func (e *ResponseError) Is(target error) bool {
	switch target := target.(type) { //nolint:errorlint // Is compares with the target itself
	case Reason:
		return target == e.Reason
	case Errno:
		return target == e.errno()
	}
	return false
}

func (e *ResponseError) errno() Errno {
	switch e.Reason {
	case ReasonDenied:
		return ErrDenied
	case ReasonInvalid:
		return ErrInvalid
	case ReasonCancelled:
		return ErrStopped
	case ReasonTooLarge, ReasonExhausted, ReasonRateLimited:
		return ErrLimit
	}
	return ErrIO
}

// As implements the interface of [errors.As], for [*Failure].
func (e *ResponseError) As(target any) bool {
	f, ok := target.(**Failure)
	if ok {
		*f = &Failure{Err: e, Code: string(e.Reason), Category: e.category(), Permanent: !e.Retryable()}
	}
	return ok
}

func (e *ResponseError) category() Category {
	switch e.Reason {
	case ReasonTimeout:
		return Timeout
	case ReasonDenied, ReasonInvalid:
		return Validation
	case ReasonTooLarge, ReasonExhausted, ReasonRateLimited:
		return Resource
	case ReasonDNS, ReasonConnection, ReasonTLS, ReasonProtocol, ReasonTooMany, ReasonRecursive, ReasonBreakerOpen:
		return Network
	}
	return Unknown
}

// StatusError is a response with an error status; see [Response.Err]. As a
// failure it has a code such as "http_404". It is permanent for a status of 400
// to 499, with category business, except for 408, 409, 425 and 429.
type StatusError struct{ Status int }

// Error returns a message with the status.
func (e *StatusError) Error() string { return "the server answered " + strconv.Itoa(e.Status) }

// Retryable reports whether the same request may succeed later.
func (e *StatusError) Retryable() bool {
	switch e.Status {
	case 408, 409, 425, 429:
		return true
	}
	return e.Status >= 500
}

// As implements the interface of [errors.As], for [*Failure].
func (e *StatusError) As(target any) bool {
	f, ok := target.(**Failure)
	if !ok {
		return false
	}
	*f = &Failure{Err: e, Code: "http_" + strconv.Itoa(e.Status), Category: Network}
	if !e.Retryable() {
		(*f).Category, (*f).Permanent = Business, true
	}
	return true
}
