package op

import (
	"slices"
	"sync"
)

// Inlet receives from a native Go channel by ops. A native channel can't hold a
// value back until a choice has been decided, so a value may arrive for an arm
// that has just lost. The Inlet keeps such a value for the next receive: nothing
// is lost, and a goroutine that performs one receive at a time gets the values in
// order. All receiving from the channel should therefore go through one Inlet. It
// keeps at most one value per receive that was waiting.
//
// While a receive waits, a goroutine receives from the channel. An Inlet is safe
// for concurrent use.
type Inlet[T any] struct {
	ch <-chan T

	mu       sync.Mutex      // protects the fields below
	waiting  []*inletWait[T] // in order of arrival
	kept     []T             // arrived for arms that had lost, oldest first
	standing int             // goroutines that may hold a value
	closed   bool            // one of them has seen the channel closed
}

// inletWait is a waiter with a goroutine receiving for it.
type inletWait[T any] struct {
	w      *Waiter[T]
	stop   chan struct{} // closed when the goroutine isn't needed any more
	exited chan struct{} // closed when it holds no value any more
}

// NewInlet returns an Inlet for ch.
func NewInlet[T any](ch <-chan T) *Inlet[T] { return &Inlet[T]{ch: ch} }

// Recv returns an op that results in the next value, or in [ErrClosed] when the
// channel is closed and all its values have been received.
func (in *Inlet[T]) Recv() Op[T] { return New(in.try, in.block) }

func (in *Inlet[T]) try() (v T, ok bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.kept) > 0 {
		return in.nextLocked(), true, nil
	}
	select {
	case v, ok = <-in.ch:
		if ok {
			return v, true, nil
		}
		// A goroutine may still hold a last value: wait for it.
		return v, in.standing == 0, ErrClosed
	default:
		return v, false, nil
	}
}

func (in *Inlet[T]) block(w *Waiter[T]) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.kept) > 0 { // arrived after try
		if w.Complete(in.kept[0], nil) {
			in.nextLocked()
		}
		return
	}
	iw := &inletWait[T]{w: w, stop: make(chan struct{}), exited: make(chan struct{})}
	in.waiting = append(in.waiting, iw)
	in.standing++
	go in.stand(iw)
	w.OnAbort(func() {
		close(iw.stop)
		<-iw.exited // a value it holds must be kept before the next receive
		in.mu.Lock()
		defer in.mu.Unlock()
		in.forgetLocked(iw)
	})
}

// stand receives from the channel on behalf of iw.
func (in *Inlet[T]) stand(iw *inletWait[T]) {
	defer close(iw.exited)
	var v T
	var got, closed bool
	select {
	case v, got = <-in.ch:
		closed = !got
	case <-iw.stop:
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.standing--
	if got {
		in.deliverLocked(iw, v)
	}
	in.closed = in.closed || closed
	if in.closed && in.standing == 0 {
		in.dismissLocked()
	}
}

// deliverLocked passes v to the waiter it arrived for, otherwise to another one,
// otherwise keeps it.
func (in *Inlet[T]) deliverLocked(iw *inletWait[T], v T) {
	in.forgetLocked(iw)
	if iw.w.Complete(v, nil) {
		return
	}
	for len(in.waiting) > 0 {
		other := in.waiting[0]
		in.forgetLocked(other)
		if other.w.Complete(v, nil) {
			close(other.stop) // it has won, so its OnAbort won't close it
			return
		}
	}
	in.kept = append(in.kept, v)
}

// dismissLocked ends all waits with [ErrClosed].
func (in *Inlet[T]) dismissLocked() {
	for _, iw := range in.waiting {
		var zero T
		iw.w.Complete(zero, ErrClosed)
	}
	in.waiting = nil
}

func (in *Inlet[T]) nextLocked() T {
	v := in.kept[0]
	in.kept = slices.Delete(in.kept, 0, 1)
	return v
}

func (in *Inlet[T]) forgetLocked(iw *inletWait[T]) {
	if i := slices.Index(in.waiting, iw); i >= 0 {
		in.waiting = slices.Delete(in.waiting, i, i+1)
	}
}
