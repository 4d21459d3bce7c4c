package op

import "context"

// Done returns an op that is ready when ctx has ended, and results in the zero T
// and [context.Cause] of ctx. As its result is always an error, it fits into a
// [Choice] of any type. Waiting for it takes no goroutine.
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
// is only closed: a value sent on it would also end a wait, and be lost. While
// the op waits, a goroutine receives from ch. To wait for the end of a context,
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
