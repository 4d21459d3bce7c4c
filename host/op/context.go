package op

import "context"

// Done returns an op that is ready when ctx has ended, and results in the zero T
// and [context.Cause] of ctx. Being a failure, it can stand in a [Choice] of any
// type. Waiting for it costs no goroutine.
func Done[T any](ctx context.Context) Op[T] {
	return New(
		func() (v T, ok bool, err error) {
			if ctx.Err() == nil {
				return v, false, nil
			}
			return v, true, context.Cause(ctx)
		},
		func(w *Waiter[T]) {
			stop := context.AfterFunc(ctx, func() {
				var zero T
				w.Complete(zero, context.Cause(ctx))
			})
			w.OnAbort(func() { stop() })
		},
	)
}

// Closed returns an op that is ready when ch is closed. ch must be a channel that
// tells by being closed: a value sent on it would end a wait too, and be lost.
// While it waits, a goroutine stands before ch. To wait for the end of a context,
// [Done] is cheaper.
func Closed(ch <-chan struct{}) Op[struct{}] {
	return New(
		func() (v struct{}, ok bool, err error) {
			select {
			case <-ch:
				return v, true, nil
			default:
				return v, false, nil
			}
		},
		func(w *Waiter[struct{}]) {
			stop, exited := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(exited)
				select {
				case <-ch:
					w.Complete(struct{}{}, nil)
				case <-stop:
				}
			}()
			w.OnAbort(func() {
				close(stop)
				<-exited
			})
		},
	)
}
