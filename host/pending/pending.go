// Package pending has what guests wait for, as ops: requests, times and the ends
// of jobs. Whatever waits here takes no processor and no goroutine of its own
// but that of the guest.
package pending

import (
	"context"
	"time"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// item is everything of this package that a guest may wait for.
type item interface {
	hostcall.Pending
	// ready is ready once the guest need not wait any more, and stays so.
	ready() op.Op[struct{}]
}

// Wait waits until one of the list, which are of this package, is ready and
// returns its index; -1 = ctx has ended before. What is ready already counts even
// if ctx has ended.
func Wait(ctx context.Context, list []hostcall.Pending) int {
	ops := make([]op.Op[struct{}], len(list))
	for i, p := range list {
		ops[i] = p.(item).ready()
	}
	first := op.FirstReady(ops...)
	won, ok, _ := op.TryPerform(first)
	if ok {
		return won.Tag
	}
	won, err := op.Perform(ctx, first)
	if err != nil {
		return -1
	}
	return won.Tag
}

// ready drops what a ready op brings.
func ready[T any](o op.Op[T]) op.Op[struct{}] {
	return op.WrapResult(o, func(T, error) (struct{}, error) { return struct{}{}, nil })
}

// timer is ready from a moment on.
type timer struct{ at time.Time }

// After returns something that is ready after a time.
func After(d time.Duration) hostcall.Pending { return timer{time.Now().Add(d)} }

func (t timer) ready() op.Op[struct{}] { return ready(op.At(t.at)) }

// Drop implements [hostcall.Pending].
func (timer) Drop() {}
