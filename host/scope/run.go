package scope

import (
	"context"

	"github.com/jobhost/jobhost/host/op"
)

// Result is the outcome of a boundary: look at the Status first.
type Result[T any] struct {
	Report
	Value T // of the body; zero unless the status is [StatusOK]
}

// Body runs within a boundary: in a scope of its own, whose context is ctx. Its
// error is handled like that of any goroutine of the scope.
type Body[T any] func(ctx context.Context, s *Scope) (T, error)

// Run runs body in a new child of parent, joins the child, and returns the
// outcome. body runs in the calling goroutine. The outcome doesn't affect the
// parent; the caller decides what it means.
//
// If parent no longer admits anything, body isn't run, and the result says so: the
// status is [StatusCancelled] if parent has failed or was cancelled, and otherwise
// [StatusFailed] with the [*AdmissionError] as primary error. Its ID is 0.
//
// Run isn't interrupted: if body ignores the end of its context, Run waits for it.
func Run[T any](parent *Scope, name string, body Body[T], opts ...ChildOption) (r Result[T]) {
	child, err := parent.attach(name, 1, opts)
	if err != nil {
		return rejected[T](name, err)
	}
	runIn(child, body, &r)
	return r
}

// runIn runs body as the only initial goroutine of child, and joins child. It
// stores the outcome in r, even if body ends the goroutine.
func runIn[T any](child *Scope, body Body[T], r *Result[T]) {
	var v T
	err := ErrGoexit
	defer func() {
		child.leave("", err)
		child.joinHere()
		r.Report = child.Report()
		if r.Status == StatusOK {
			r.Value = v
		}
	}()
	err = protect(func() (err error) {
		v, err = body(&child.ctx, child)
		return err
	})
}

func rejected[T any](name string, err error) Result[T] {
	r := Report{Name: name, Status: StatusFailed, Primary: err}
	if c := cancellation(err); c != nil {
		r = Report{Name: name, Status: StatusCancelled, Cancelled: c}
	}
	return Result[T]{Report: r}
}

// RunOp returns Run as an op: performing it starts body in a goroutine, and it is
// ready when the child has been joined. It is never ready immediately, so
// [op.OrElse] and [op.TryPerform] don't even start it.
//
// If the op loses, the child is cancelled with [ErrAborted], and the performing
// waits for its join before it returns: whichever arm wins, no part of body runs
// afterwards. If several boundaries lose, all are cancelled before the first is
// waited for. The result of a boundary that has lost is discarded, even if it was
// ready at the same moment; the parent still has its report.
func RunOp[T any](parent *Scope, name string, body Body[T], opts ...ChildOption) op.Op[Result[T]] {
	return op.Guard(func() op.Op[Result[T]] {
		var child *Scope
		run := op.New(
			func() (r Result[T], ok bool, err error) { return r, false, nil },
			func(w *op.Waiter[Result[T]]) {
				var err error
				if child, err = parent.attach(name, 1, opts); err != nil {
					w.Complete(rejected[T](name, err), nil)
					return
				}
				w.OnAbort(func() { child.Cancel(ErrAborted) })
				go func() {
					var r Result[T]
					defer func() { w.Complete(r, nil) }()
					runIn(child, body, &r)
				}()
			},
		)
		return op.OnAbort(run, func() {
			if child != nil {
				_, _ = op.PerformRaw(child.done.Wait())
			}
		})
	})
}
