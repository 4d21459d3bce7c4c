// Package builtin runs Go functions as if they were plugins: the host's own
// work goes through the queue and the pool, under the same limits as every
// other worker. It is not sandboxed.
package builtin

import (
	"context"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Func runs one attempt to its end. ctx ends at the attempt's deadline, and when
// the attempt is stopped; the zero Outcome means that Func ended because of
// that. It is called concurrently, each time with a different attempt.
type Func func(ctx context.Context, at *hostcall.Attempt) jobhost.Outcome

// New returns a plugin whose instances run f. closing is called once, when the
// plugin is closed; nil = nothing to do.
func New(f Func, closing func() error) runtime.Plugin { return &plugin{run: f, closing: closing} }

type plugin struct {
	run     Func
	closing func() error
}

// Info implements [runtime.Plugin].
func (p *plugin) Info() runtime.Info {
	return runtime.Info{ABI: runtime.ABIBuiltin, Isolation: runtime.IsolateInstance}
}

// Instantiate implements [runtime.Plugin].
func (p *plugin) Instantiate(context.Context) (runtime.Instance, error) { return instance{p.run}, nil }

// Close implements [runtime.Plugin].
func (p *plugin) Close(context.Context) error {
	if p.closing == nil {
		return nil
	}
	return p.closing()
}

type instance struct{ run Func }

// Run implements [runtime.Instance].
func (i instance) Run(ctx context.Context, at *hostcall.Attempt) runtime.Result {
	if !at.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at.Deadline)
		defer cancel()
	}
	outcome := i.run(ctx, at)
	if outcome.Kind == 0 && ctx.Err() != nil {
		outcome = at.Stopped(ctx)
	}
	return runtime.Result{Outcome: outcome}
}

// Close implements [runtime.Instance].
func (instance) Close(context.Context) error { return nil }
