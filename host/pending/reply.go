package pending

import (
	"context"
	"net/http"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// reply is a request and its response. It implements [netproxy.Handler] and [hostcall.Exchange].
type reply struct {
	task *netproxy.Task
	promise[*netproxy.Response]
}

// idempotencyKey is the header field by which a server recognises a repetition.
const idempotencyKey = "Idempotency-Key"

// Send passes a guest's request to a pool; nil = requests aren't allowed. Errors are of type
// [*jobhost.Error].
func Send(pool netproxy.Pool, r *hostcall.HTTPRequest) (hostcall.Exchange, error) {
	if pool == nil {
		return nil, ErrNoHTTP
	}
	spec := netproxy.RequestSpec{
		ID: r.Key, Method: r.Method, URL: r.URL, Header: r.Header, Body: r.Body, MaxResponseBytes: r.MaxBytes,
	}
	if spec.Header = http.Header(r.Header); spec.Header.Get(idempotencyKey) == "" {
		spec.HostHeader = http.Header{idempotencyKey: {r.Key}}
	}
	request, err := netproxy.NewRequest(spec)
	if err != nil {
		return nil, err
	}
	x := &reply{}
	x.task = netproxy.NewTask(request, x, "", nil)
	if err := pool.Enqueue(x.task); err != nil {
		return nil, err
	}
	return x, nil
}

// Drop implements [hostcall.Pending].
func (x *reply) Drop() { x.task.Cancel() }

// Response implements [hostcall.Exchange].
func (x *reply) Response(ctx context.Context) (*hostcall.HTTPResponse, error) {
	r, err := x.get(ctx)
	if ctx.Err() != nil && err != nil {
		return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Field: string(netproxy.CodeCancelled), Message: "there was no time left for the response"}
	}
	if err != nil {
		return nil, err
	}
	return &hostcall.HTTPResponse{Status: r.Status, Header: r.Header, Body: r.Body}, nil
}

// OnComplete implements [netproxy.Handler].
func (x *reply) OnComplete(_ context.Context, _ *netproxy.Task, r *netproxy.Response) {
	x.set(r, nil)
}

// OnError implements [netproxy.Handler].
func (x *reply) OnError(_ context.Context, _ *netproxy.Task, e *netproxy.Error) {
	x.set(nil, shown(e))
}

// Retry implements [netproxy.Handler].
func (x *reply) Retry(context.Context, *netproxy.Task) {
	x.set(nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Field: string(netproxy.CodeCancelled), Message: "the host stops", Cause: netproxy.ErrClosed})
}

// shown converts an error for guests. It has no cause, except for [netproxy.ErrExhausted] when nothing
// was sent.
func shown(e *netproxy.Error) error {
	shown := &jobhost.Error{Code: jobhost.CodeUnavailable, Field: string(e.Code), Message: e.Message}
	switch e.Code {
	case netproxy.CodeDenied:
		shown.Code = jobhost.CodeDenied
	case netproxy.CodeInvalid:
		shown.Code = jobhost.CodeInvalid
	case netproxy.CodeTooLarge:
		shown.Code = jobhost.CodeTooLarge
	case netproxy.CodeExhausted:
		shown.Code = jobhost.CodeExhausted
	case netproxy.CodeRateLimited:
		shown.Code = jobhost.CodeExhausted
		if len(e.Redirects) == 0 { // nothing was sent
			shown.Cause = netproxy.ErrExhausted
		}
	}
	return shown
}
