package pending

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Alone provides the services of an attempt that runs without a host: it can send
// requests, and wait for them and for timers. It has no queue, and discards what
// the attempt emits.
type Alone struct {
	Pool netproxy.Pool // nil = it can't send requests
}

var (
	_ hostcall.Services = (*Alone)(nil)
	_ hostcall.Ops      = (*Alone)(nil)
	_ hostcall.HTTP     = (*Alone)(nil)
)

// Emit implements [hostcall.Services].
func (*Alone) Emit(*hostcall.Attempt, []byte) {}

// Progress implements [hostcall.Services].
func (*Alone) Progress(*hostcall.Attempt, int64, int64) {}

// Metric implements [hostcall.Services].
func (*Alone) Metric(*hostcall.Attempt, hostcall.MetricKind, string) (int32, hostcall.Errno) {
	return 0, hostcall.ErrDenied
}

// Observe implements [hostcall.Services].
func (*Alone) Observe(*hostcall.Attempt, int32, float64) hostcall.Errno { return hostcall.ErrDenied }

// After implements [hostcall.Ops].
func (*Alone) After(_ *hostcall.Attempt, d time.Duration) hostcall.Pending { return After(d) }

// Await implements [hostcall.Ops].
func (*Alone) Await(*hostcall.Attempt, string) (hostcall.Ending, error) { return nil, errNoQueue }

// Wait implements [hostcall.Ops].
func (*Alone) Wait(ctx context.Context, list []hostcall.Pending) int { return Wait(ctx, list) }

// Send implements [hostcall.HTTP].
func (a *Alone) Send(_ *hostcall.Attempt, r *hostcall.HTTPRequest) (hostcall.Exchange, error) {
	return Send(a.Pool, r)
}

// Defer implements [hostcall.HTTP].
func (*Alone) Defer(*hostcall.Attempt, *hostcall.HTTPRequest, string, []byte) (string, error) {
	return "", errNoQueue
}

var errNoQueue = &jobhost.Error{Code: jobhost.CodeDenied, Message: "there is no queue here: the job runs without a host"}

// ErrNoHTTP is the error for a worker that isn't allowed to send requests.
var ErrNoHTTP error = &jobhost.Error{
	Code: jobhost.CodeDenied, Field: string(netproxy.CodeDenied), Message: "this worker has no access to HTTP",
	Hint: "its http.allow in the manifest says where it may go",
}
