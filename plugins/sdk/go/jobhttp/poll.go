package jobhttp

import (
	"context"
	"runtime"
	"slices"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// exchange is a request in flight. Its goroutine alone reads the response.
type exchange struct {
	call *jobhost.Call
	// deadline is when its context ends; zero = none.
	deadline time.Time
	// woken signals that there is something to do: take the response, or poll.
	woken chan struct{}
	ready bool  // or there is nothing to wait for any more. Protected by the transport's mutex, as is err
	err   error // why waiting ended early
}

// wake resumes the exchange's goroutine. It never blocks: one signal is enough.
func (x *exchange) wake() {
	select {
	case x.woken <- struct{}{}:
	default:
	}
}

// exchange sends a request and waits for its response.
func (t *Transport) exchange(ctx context.Context, request jobhost.Request) (*jobhost.Response, error) {
	call, err := t.job.Send(request)
	if err != nil {
		return nil, err
	}
	defer call.Drop()
	x := &exchange{call: call, woken: make(chan struct{}, 1)}
	x.deadline, _ = ctx.Deadline()
	t.mu.Lock()
	t.open = append(t.open, x)
	t.turns++
	t.mu.Unlock()
	defer t.leave(x)
	for {
		switch t.duty(x) {
		case done:
			if x.err != nil {
				return nil, x.err
			}
			return call.Response()
		case poll:
			t.poll(ctx, x)
		case wait:
			select {
			case <-x.woken:
				continue
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil && !t.isReady(x) {
			return nil, context.Cause(ctx)
		}
	}
}

// What a goroutine should do next.
const (
	done = iota // its response is there
	poll        // ask the host, for all
	wait        // another one asks
)

// duty says what the goroutine of x should do.
func (t *Transport) duty(x *exchange) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case x.ready:
		return done
	case t.polling:
		return wait
	}
	t.polling = true
	return poll
}

func (t *Transport) isReady(x *exchange) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return x.ready
}

// leave removes an exchange. If it was polling, another one takes over.
func (t *Transport) leave(x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns++
	t.remove(x)
	t.handOn()
}

func (t *Transport) remove(x *exchange) {
	if i := slices.Index(t.open, x); i >= 0 {
		t.open = slices.Delete(t.open, i, i+1)
	}
}

// handOn makes another one poll if none does.
func (t *Transport) handOn() {
	if !t.polling && len(t.open) > 0 {
		t.open[0].wake()
	}
}

// How long the host is asked to wait at a time: doubled each time nothing has
// arrived.
const (
	shortest = 4 * time.Millisecond
	longest  = 256 * time.Millisecond
)

// poll asks the host on behalf of all open exchanges, until x is ready or ctx has ended.
func (t *Transport) poll(ctx context.Context, x *exchange) {
	for slice := shortest; ; {
		t.letOthersRun()
		t.mu.Lock()
		if x.ready || ctx.Err() != nil {
			t.polling = false
			t.handOn()
			t.mu.Unlock()
			return
		}
		if t.step(slice) {
			slice = shortest
		} else {
			slice = min(2*slice, longest)
		}
		t.mu.Unlock()
	}
}

// step asks the host once and reports whether something has arrived. t.mu is
// held: in a worker no other goroutine runs during the call.
func (t *Transport) step(slice time.Duration) bool {
	calls := make([]jobhost.Pending, len(t.open))
	for i, x := range t.open {
		calls[i] = x.call
		if !x.deadline.IsZero() {
			slice = max(min(slice, time.Until(x.deadline)), time.Millisecond)
		}
	}
	n, err := t.job.Wait(slice, calls...)
	switch {
	case err != nil: // for all of them: the attempt should end
		for _, x := range t.open {
			x.ready, x.err = true, err
			x.wake()
		}
		t.open = nil
	case n >= 0:
		x := t.open[n]
		x.ready = true
		t.remove(x)
		x.wake()
	}
	return err != nil || n >= 0
}

// letOthersRun yields until no goroutine begins or finishes a request any more.
// A goroutine that yields is queued behind the runnable ones; these can make
// others runnable, and so on.
func (t *Transport) letOthersRun() {
	for {
		t.mu.Lock()
		before := t.turns
		t.mu.Unlock()
		runtime.Gosched()
		runtime.Gosched()
		t.mu.Lock()
		still := t.turns == before
		t.mu.Unlock()
		if still {
			return
		}
	}
}
