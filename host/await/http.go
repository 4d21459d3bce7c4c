package await

import (
	"context"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/netproxy"
)

// HTTP returns an op that sends a request each time it is performed, and results in
// its response. If the op loses, the request is cancelled at whatever stage it is.
// Errors are those of [netproxy.NewRequest] and [netproxy.Pool.Enqueue], of type
// [*netproxy.Error], or [netproxy.ErrClosed] if the pool was stopped first; then
// the server may have seen the request.
func HTTP(pool netproxy.Pool, spec netproxy.RequestSpec) op.Op[*netproxy.Response] {
	return op.Bracket(
		func() (*exchange, error) { return send(pool, spec) },
		func(x *exchange, aborted bool) {
			if aborted {
				x.task.Cancel()
			}
		},
		func(x *exchange) op.Op[*netproxy.Response] { return x.response.Get() },
	)
}

// exchange is a request and its response. It implements [netproxy.Handler].
type exchange struct {
	task     *netproxy.Task
	response op.Future[*netproxy.Response]
}

func send(pool netproxy.Pool, spec netproxy.RequestSpec) (*exchange, error) {
	request, err := netproxy.NewRequest(spec)
	if err != nil {
		return nil, err
	}
	x := new(exchange)
	x.task = netproxy.NewTask(request, x, "", nil)
	if err := pool.Enqueue(x.task); err != nil {
		return nil, err
	}
	return x, nil
}

// OnComplete implements [netproxy.Handler].
func (x *exchange) OnComplete(_ context.Context, _ *netproxy.Task, r *netproxy.Response) {
	x.response.Set(r, nil)
}

// OnError implements [netproxy.Handler].
func (x *exchange) OnError(_ context.Context, _ *netproxy.Task, e *netproxy.Error) {
	x.response.Set(nil, e)
}

// Retry implements [netproxy.Handler].
func (x *exchange) Retry(context.Context, *netproxy.Task) {
	x.response.Set(nil, netproxy.ErrClosed)
}
