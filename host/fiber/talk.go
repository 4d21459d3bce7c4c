package fiber

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hub"
	"github.com/jobhost/jobhost/host/op"
)

// SendFiber puts a message, which must not be changed any more, into the input queue
// of a fiber. Errors, in this order: not_found (no such fiber, or it has ended),
// conflict (it is paused), not_found that wraps [jobhost.ErrFiberEnded] (it is
// ending), exhausted (the queue is full). With wait it waits for room instead of
// the last, until ctx ends or one of the other errors applies; callers are served
// in order. A message over [jobhost.MaxFiberMessage] is too_large.
//
// An accepted message is processed unless the fiber ends before; the Waiting of an
// ended fiber counts the unprocessed ones.
func (r *Registry) SendFiber(ctx context.Context, id string, message []byte, wait bool) error {
	if len(message) > jobhost.MaxFiberMessage {
		return errTooLarge(len(message))
	}
	f, end := r.find(id)
	switch {
	case f == nil && end == nil:
		return errNotFound(id)
	case f == nil:
		return errOver(jobhost.CodeNotFound, end)
	}
	err := f.offer(message)
	if jobhost.CodeOf(err) != jobhost.CodeExhausted {
		return err
	}
	if !wait {
		r.cfg.Observe.Refused(LimitInput)
		return err
	}
	if _, err := op.Perform(ctx, f.send(message)); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			return fmt.Errorf("wait for room in the input of fiber %s: %w", id, err)
		}
		return err
	}
	return nil
}

// offer accepts a message if that is possible now.
func (f *Fiber) offer(message []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	full, err := f.refusalLocked(message)
	switch {
	case full:
		return errFull(f.spec.ID, f.in.len(), f.in.bytes)
	case err == nil:
		f.in.push(message)
	}
	return err
}

// refusalLocked returns why a message is refused, or full if there is no room for
// it or for messages that came before.
func (f *Fiber) refusalLocked(message []byte) (full bool, err error) {
	switch {
	case f.paused:
		return false, errPaused(f.spec.ID)
	case f.in.shut != nil:
		return false, f.in.shut
	}
	return len(f.in.senders) > 0 || !f.in.fits(message), nil
}

// send returns an op that puts a message into the queue when there is room.
func (f *Fiber) send(message []byte) op.Op[struct{}] {
	return op.New(
		func() (none struct{}, ok bool, err error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			full, err := f.refusalLocked(message)
			if !full && err == nil {
				f.in.push(message)
			}
			return none, !full, err
		},
		func(w *op.Waiter[struct{}]) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if full, err := f.refusalLocked(message); !full { // since try
				if w.Complete(struct{}{}, err) && err == nil {
					f.in.push(message)
				}
				return
			}
			s := &sender{message: message, waiter: w}
			f.in.senders = append(f.in.senders, s)
			w.OnAbort(func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.in.forget(s)
				f.in.admit() // the next message may be smaller
			})
		})
}

// Subscribe returns a subscription to what a fiber publishes from now on, preceded
// by what the query asks for from the past. It must be closed. It ends with
// [jobhost.ErrFiberEnded] when the fiber has completed, and with an error that
// wraps it when the fiber has failed or was killed. Subscribe returns that error if
// the fiber has already ended. If some of the past is no longer remembered, the
// subscription begins with [hub.ErrGap].
func (r *Registry) Subscribe(query jobhost.FiberQuery) (*hub.Subscription[jobhost.FiberOutput], error) {
	f, end := r.find(query.ID)
	switch {
	case f == nil && end == nil:
		return nil, errNotFound(query.ID)
	case f == nil && !meant(&query, end.CreatedAt), f != nil && !meant(&query, f.createdAt):
		return nil, errAnother(query.ID)
	case f == nil:
		return nil, reason(end)
	}
	return f.hub().Subscribe(hub.Query{Replay: query.Replay || query.After > 0, After: query.After}), nil
}

// meant reports whether a query refers to the fiber created at that time.
func meant(query *jobhost.FiberQuery, createdAt time.Time) bool {
	return query.CreatedAt.IsZero() || query.CreatedAt.Equal(createdAt)
}

// WatchFiber yields what a fiber publishes, like [Registry.Subscribe], until ctx ends,
// the subscription ends or the reader stops. The last pair has the error that says
// which. A gap shows only in the numbers.
func (r *Registry) WatchFiber(ctx context.Context, query jobhost.FiberQuery) iter.Seq2[jobhost.FiberOutput, error] {
	return func(yield func(jobhost.FiberOutput, error) bool) {
		outputs, err := r.Subscribe(query)
		if err != nil {
			yield(jobhost.FiberOutput{Time: time.Now()}, err)
			return
		}
		defer outputs.Close()
		for {
			item, err := outputs.Next(ctx)
			if errors.Is(err, hub.ErrGap) {
				continue
			}
			if err != nil {
				yield(jobhost.FiberOutput{Time: time.Now()}, err)
				return
			}
			if !yield(item.Value, nil) {
				return
			}
		}
	}
}
