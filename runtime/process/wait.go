package process

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// waiting is a call of the process for which nothing is ready yet. Several of one attempt are waited for together, and
// any other call is handled first: the process may have threads.
type waiting struct {
	call    uint32
	handles []int32
	until   time.Time // zero = forever
	look    bool      // don't wait at all
	reads   bool      // the only handle is to be read when it is ready
	most    int       // that many bytes; 0 = only report how many there are
}

func newWaiting(call uint32, w *protocol.Wait) *waiting {
	p := &waiting{call: call, handles: w.GetHandles(), look: w.GetTimeoutMs() == 0}
	if ms := w.GetTimeoutMs(); ms > 0 {
		p.until = time.Now().Add(time.Duration(min(ms, int64(jobhost.MaxDelay/time.Millisecond))) * time.Millisecond)
	}
	if w.GetTimeoutMs() < hostcall.NoTimeout {
		p.handles = nil // which is rejected
	}
	return p
}

func newReading(call uint32, r *protocol.Read) *waiting {
	return &waiting{call: call, handles: []int32{r.GetHandle()}, reads: true, most: min(max(int(r.GetMax()), 0), maxRead)}
}

// beginWait checks whether something is ready. If not, the wait continues later, and there is no answer yet.
func (r *run) beginWait(ctx context.Context, w *waiting, a *protocol.Answer) (answered bool) {
	if r.at.Cancelled() && !r.notified {
		r.waits, r.waitsFor = append(r.waits, w), r.waitsFor+len(w.handles)
		r.tell(ctx)
		return false
	}
	if r.look(ctx, w, a) {
		return true
	}
	if r.waitsFor+len(w.handles) > hostcall.MaxWait {
		a.Errno = int32(hostcall.ErrLimit)
		return true
	}
	r.waits, r.waitsFor = append(r.waits, w), r.waitsFor+len(w.handles)
	return false
}

// look answers a waiting call if something is ready by now.
func (r *run) look(ctx context.Context, w *waiting, a *protocol.Answer) (answered bool) {
	index, e := r.at.Wait(ctx, w.handles, 0)
	switch {
	case e == hostcall.ErrNotFound && !w.look && !w.over():
		return false
	case e == hostcall.OK && w.reads:
		e = r.read(ctx, w, a)
	case e == hostcall.OK:
		a.Number = int64(index)
	}
	a.Errno = int32(e)
	return true
}

// read reads the next part of a ready handle.
func (r *run) read(ctx context.Context, w *waiting, a *protocol.Answer) hostcall.Errno {
	n, e := r.at.Read(ctx, w.handles[0], nil)
	if e != hostcall.OK || w.most == 0 {
		a.Number = int64(n)
		return e
	}
	buf := make([]byte, max(min(w.most, n), 1)) // an empty message is consumed by a read with room
	n, e = r.at.Read(ctx, w.handles[0], buf)
	a.Data = buf[:n]
	return e
}

// over reports whether the time is up.
func (w *waiting) over() bool { return !w.until.IsZero() && !time.Now().Before(w.until) }

// waitAll waits for what the process waits for, and answers, until the process sends something else, the
// attempt is over or the process has died. It returns at once if the process waits for nothing.
func (r *run) waitAll(ctx context.Context) {
	for len(r.waits) > 0 && !r.called() && r.child.life.Err() == nil && !r.at.Over(ctx) {
		if r.at.Cancelled() && !r.notified {
			r.tell(ctx)
			return
		}
		r.waitOnce(ctx)
		r.settle(ctx)
	}
}

// called reports whether there is something to do other than to wait.
func (r *run) called() bool { return len(r.frames) > 0 || len(r.cancelled) > 0 }

// tell answers all waiting calls that the attempt is cancelled: each thread of the process should notice.
func (r *run) tell(ctx context.Context) {
	r.notified = true
	_, _ = r.at.Wait(ctx, r.waits[0].handles, 0) // consumes the one answer that reports this
	for _, w := range r.waits {
		r.send(&protocol.HostFrame{Frame: &protocol.HostFrame_Answer{Answer: &protocol.Answer{Call: w.call, Errno: int32(hostcall.ErrStopped)}}})
	}
	clear(r.waits)
	r.waits, r.waitsFor = r.waits[:0], 0
}

// waitOnce waits until something may have changed.
func (r *run) waitOnce(ctx context.Context) {
	var all []int32
	var first time.Time
	for _, w := range r.waits {
		all = append(all, w.handles...)
		if !w.until.IsZero() && (first.IsZero() || w.until.Before(first)) {
			first = w.until
		}
	}
	timeout := int64(hostcall.NoTimeout)
	if !first.IsZero() {
		timeout = max(int64((time.Until(first)+time.Millisecond-1)/time.Millisecond), 0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.child.life, cancel)()
	r.wake.Store(&cancel)
	defer r.wake.Store(nil)
	if !r.called() { // what comes from now on wakes it
		_, _ = r.at.Wait(ctx, all, timeout)
	}
}

// settle answers the waiting calls that can be answered.
func (r *run) settle(ctx context.Context) {
	left := r.waits[:0]
	r.waitsFor = 0
	for _, w := range r.waits {
		a := &protocol.Answer{Call: w.call}
		if !r.look(ctx, w, a) {
			left, r.waitsFor = append(left, w), r.waitsFor+len(w.handles)
			continue
		}
		r.send(&protocol.HostFrame{Frame: &protocol.HostFrame_Answer{Answer: a}})
	}
	clear(r.waits[len(left):])
	r.waits = left
}

func childKey(n int64) string { return "child." + strconv.FormatInt(n, 10) }

func asError(err error) (*jobhost.Error, bool) { return errors.AsType[*jobhost.Error](err) }
