// Package builtin runs functions in Go as if they were plugins: what the host
// does by itself goes through the queue and the pool, under the limits of every
// other worker. There is no sandbox around them.
package builtin

import (
	"context"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Func runs one attempt to its end. ctx ends at the attempt's deadline, and when
// it is stopped; the zero Outcome says that Func ended for that. It is called by
// many goroutines at once, each with an attempt of its own.
type Func func(ctx context.Context, at *hostcall.Attempt) jobhost.Outcome

// New returns a plugin whose instances run f. closing is called once, when the
// plugin is closed; nil = nothing is to be done then.
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
