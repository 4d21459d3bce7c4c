// Package await makes ops of things that a program embedding jobhost, or talking to it, waits for: ends of
// jobs, changes of states, HTTP requests, and any function that takes a context.
//
// Not here are those that provide ops themselves:
// [github.com/jobhost/jobhost/host/hub.Subscription.NextOp],
// [github.com/jobhost/jobhost/host/fiber.Fiber.Recv], [github.com/jobhost/jobhost/host/exec.Process.Exit].
package await

import (
	"context"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

// Call returns an op that calls f each time it is performed, in a goroutine of a child of s with the given
// name, and results in what f returns. If the op loses, f's context is cancelled, and the perform returns
// after f. It is never ready immediately, so [op.TryPerform] doesn't call f.
func Call[T any](s *scope.Scope, name string, f func(ctx context.Context) (T, error)) op.Op[T] {
	body := func(ctx context.Context, _ *scope.Scope) (T, error) { return f(ctx) }
	return op.Wrap(scope.RunOp(s, name, body, scope.Forget()), func(r scope.Result[T]) (T, error) {
		return r.Value, r.Err()
	})
}

// Job returns an op that is ready when a job has ended, and results in the job. w is a host or a client of
// one.
func Job(s *scope.Scope, w jobhost.Watcher, id string) op.Op[jobhost.Job] {
	return Call(s, "wait for job "+id, func(ctx context.Context) (jobhost.Job, error) { return w.Wait(ctx, id) })
}
