package hostcall

import (
	"context"

	"github.com/jobhost/jobhost"
)

// HTTP is an optional ability of [Services]: the only way out of a sandbox.
type HTTP interface {
	// Fetch sends a request and waits for the whole response, at most until
	// ctx ends, as it does at the attempt's deadline. Whether the worker may reach
	// that place is judged here, on each redirect again. A response with any
	// status is no error. Errors are of type [*jobhost.Error] and safe to show
	// to the guest: [jobhost.CodeDenied] without a grant,
	// [jobhost.CodeInvalid] for a request that makes no sense,
	// [jobhost.CodeTooLarge] for a response over its limit, and
	// [jobhost.CodeUnavailable] when there was no response.
	Fetch(ctx context.Context, at *Attempt, r *HTTPRequest) (*HTTPResponse, error)
}

// HTTPRequest is what a guest wants to send.
type HTTPRequest struct {
	Method string // in upper case
	URL    string // as the guest wrote it
	Header map[string][]string
	Body   []byte // valid during the call
	// MaxBytes bounds the body of the response, below the worker's own limit;
	// 0 = that limit alone.
	MaxBytes int64
}

// HTTPResponse is what came back. It belongs to the caller.
type HTTPResponse struct {
	Status int
	Header map[string][]string
	Body   []byte
}

// Fetch sends a request through the host's [HTTP]; a host without it denies all.
// Nothing else of a host can hold up a guest for long, and no engine can stop a
// guest while it waits in the host: so the deadline is set here.
func (a *Attempt) Fetch(ctx context.Context, r *HTTPRequest) (*HTTPResponse, error) {
	h, ok := a.Services.(HTTP)
	if !ok {
		return nil, &jobhost.Error{Code: jobhost.CodeDenied, Message: "this host gives workers no access to HTTP"}
	}
	if !a.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, a.Deadline)
		defer cancel()
	}
	return h.Fetch(ctx, a, r)
}
