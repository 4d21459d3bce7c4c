package hostcall

import (
	"cmp"
	"context"
	"strconv"

	"github.com/jobhost/jobhost"
)

// HTTP is an optional ability of [Services]: the only way out of a sandbox.
type HTTP interface {
	// Send begins a request and returns at once. Whether the worker may reach the
	// destination is judged here, and again on each redirect. r is valid during the
	// call. Errors are of type [*jobhost.Error] and safe to show to the guest:
	// [jobhost.CodeDenied] for a worker without a grant, [jobhost.CodeInvalid] for
	// an invalid request, [jobhost.CodeExhausted] when there is no room for it.
	Send(at *Attempt, r *HTTPRequest) (Exchange, error)
	// Defer makes the host send the request once the attempt has succeeded, and
	// submit a job of the same worker with the response, for entry. It returns
	// the id of the request until then. Errors are those of Send.
	Defer(at *Attempt, r *HTTPRequest, entry string, args []byte) (id string, err error)
}

// Exchange is a request in flight, and then its response. It is not safe for concurrent use.
type Exchange interface {
	Pending
	// Response waits for the whole response, at most until ctx ends. A response
	// with any status is not an error. Errors are of type [*jobhost.Error] and
	// safe to show to the guest: [jobhost.CodeDenied] for a destination that the
	// worker may not reach, [jobhost.CodeTooLarge] for a response over its limit,
	// and [jobhost.CodeUnavailable] when there was no response; their Field is a
	// word for the kind of fault. The response belongs to the caller.
	Response(ctx context.Context) (*HTTPResponse, error)
}

// MaxArgsBytes bounds the data that a deferred request carries for its response.
const MaxArgsBytes = 64 << 10

// HTTPRequest is what a guest wants to send.
type HTTPRequest struct {
	Method string // in upper case
	URL    string // as the guest wrote it
	Header map[string][]string
	Body   []byte
	// MaxBytes bounds the body of the response, below the worker's own limit;
	// 0 = that limit alone.
	MaxBytes int64
	// Key is the idempotency key that the host sends to the server, unless the
	// guest's own header sets one.
	Key string
}

// HTTPResponse is the server's response.
type HTTPResponse struct {
	Status int
	Header map[string][]string
	Body   []byte
}

// Send begins a request and returns a handle for [Attempt.Wait]. Faults are
// logged for the author of the guest. The result is [ErrInvalid] for a text that
// [ParseRequest] rejects, [ErrDenied] for a worker without a grant, and
// [ErrLimit] when the attempt has too many requests open, has sent too many or
// moved too many bytes, or the host has no room. Whether the destination may be
// reached shows in the response.
func (a *Attempt) Send(text []byte) (int32, Errno) {
	if far := a.far(); far != nil {
		return far.Send(text)
	}
	r, err := ParseRequest(text)
	if err == nil {
		var x Exchange
		if x, err = a.send(r); err == nil {
			return a.keep(&handle{pending: x, request: true}), OK
		}
	}
	a.Log(LevelWarn, []byte("http: "+err.Error()))
	return 0, ErrnoOf(err)
}

// send begins a request within the attempt's limits.
func (a *Attempt) send(r *HTTPRequest) (Exchange, error) {
	if _, ok := a.Services.(HTTP); ok { // checked first, so that a refused request gets no number
		if a.ops.open >= a.Limits.OpenRequests {
			return nil, a.tooMuch("an attempt may have %s HTTP requests open", strconv.Itoa(a.Limits.OpenRequests))
		}
		if a.ops.held >= maxHandles {
			return nil, a.tooMuch("an attempt may hold %s handles", strconv.Itoa(maxHandles))
		}
	}
	h, err := a.mayRequest(r)
	if err != nil {
		return nil, err
	}
	x, err := h.Send(a, r)
	if err != nil {
		a.notSent(r)
		return nil, err
	}
	a.ops.open++
	return x, nil
}

// mayRequest counts a request and gives it its key.
func (a *Attempt) mayRequest(r *HTTPRequest) (HTTP, error) {
	h, ok := a.Services.(HTTP)
	left := a.Limits.RequestBytes - a.ops.moved - int64(len(r.Body))
	switch {
	case !ok:
		return nil, &jobhost.Error{Code: jobhost.CodeDenied, Message: "this worker has no access to HTTP"}
	case a.ops.requests >= a.Limits.Requests:
		return nil, a.tooMuch("an attempt may send %s HTTP requests", strconv.Itoa(a.Limits.Requests))
	case left <= 0:
		return nil, a.tooMuch("an attempt may send and receive %s bytes over HTTP", strconv.FormatInt(a.Limits.RequestBytes, 10))
	}
	a.ops.requests++
	a.ops.number++
	a.ops.moved += int64(len(r.Body))
	if r.MaxBytes == 0 || r.MaxBytes > left {
		r.MaxBytes = left
	}
	r.Key = cmp.Or(a.KeyPrefix, a.Job+"/"+strconv.Itoa(a.Task)) + "/" + strconv.Itoa(a.ops.number)
	return h, nil
}

// notSent takes back what mayRequest has counted: another attempt, for which there
// is room, must give the following requests the same keys.
func (a *Attempt) notSent(r *HTTPRequest) {
	a.ops.requests--
	a.ops.number--
	a.ops.moved -= int64(len(r.Body))
}

// Fetch sends a request and waits for the whole response, at most until the
// attempt is stopped. Errors are those of [HTTP] and [Exchange].
func (a *Attempt) Fetch(ctx context.Context, r *HTTPRequest) (*HTTPResponse, error) {
	if far := a.far(); far != nil {
		return far.Fetch(ctx, r)
	}
	x, err := a.send(r)
	if err != nil {
		return nil, err
	}
	defer a.Drop(a.keep(&handle{pending: x, request: true}))
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	return x.Response(ctx) // Drop counts its body
}

// Defer makes the host send a request once the attempt has succeeded, and deliver
// the response as a job of the same worker, for entry; empty = the worker's own.
// It returns a number by which [Attempt.Info] knows the id of the request's job,
// as with [Attempt.Submit]. Its errors are those of [Attempt.Send].
func (a *Attempt) Defer(text []byte, entry string, args []byte) (int32, Errno) {
	if far := a.far(); far != nil {
		return far.Defer(text, entry, args)
	}
	id, err := a.deferred(text, entry, args)
	if err != nil {
		a.Log(LevelWarn, []byte("http_defer: "+err.Error()))
		return 0, ErrnoOf(err)
	}
	return a.child(id, SubmitWithSuccess), OK
}

func (a *Attempt) deferred(text []byte, entry string, args []byte) (string, error) {
	if len(args) > MaxArgsBytes {
		return "", a.tooMuch("the arguments of a deferred request are up to %s bytes", strconv.Itoa(MaxArgsBytes))
	}
	r, err := ParseRequest(text)
	if err != nil {
		return "", err
	}
	h, err := a.mayRequest(r)
	if err != nil {
		return "", err
	}
	id, err := h.Defer(a, r, entry, args)
	if err != nil {
		a.notSent(r)
	}
	return id, err
}
