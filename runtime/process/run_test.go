package process

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// waitFor makes a call that waits for a handle until it is ready.
func waitFor(id uint32, handle int64) *protocol.WorkerFrame {
	return call(id, &protocol.Call{Call: &protocol.Call_Wait{Wait: &protocol.Wait{Handles: []int32{int32(handle)}, TimeoutMs: hostcall.NoTimeout}}})
}

func timer(id uint32, ms int64) *protocol.WorkerFrame {
	return call(id, &protocol.Call{Call: &protocol.Call_Timer{Timer: &protocol.Timer{Ms: ms}}})
}

// networked is an attempt that may wait for things.
func networked() *hostcall.Attempt {
	at := runtimetest.Attempt("", "")
	at.Services = &runtimetest.Network{Respond: func(context.Context, *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
		return &hostcall.HTTPResponse{Status: 200, Body: []byte("hello")}, nil
	}}
	return at
}

// TestCancelWakesWaits cancels an attempt while several threads of its process wait: each is notified, once.
func TestCancelWakesWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, at := newFake(t), networked()
		at.Deadline = time.Time{}
		r, end := f.start(t.Context(), t, at)
		say(t, r, timer(1, 3600_000))
		handle := f.answer(t, 1).GetNumber()
		for id := range uint32(3) {
			say(t, r, waitFor(10+id, handle))
		}
		synctest.Wait()
		at.Cancel()
		f.hear(t, func(h *protocol.HostFrame) bool { return h.GetCancel() != nil })
		for id := range uint32(3) {
			if a := f.answer(t, 10+id); a.GetErrno() != int32(hostcall.ErrStopped) {
				t.Errorf("wait %d: %v", id, a)
			}
		}
		say(t, r, waitFor(20, handle)) // it may wait again while it shuts down
		began := time.Now()
		if a := f.answer(t, 20); a.GetErrno() != 0 || time.Since(began) < time.Minute {
			t.Errorf("a wait after that: %v, after %v", a, time.Since(began))
		}
		say(t, r, resultFrame())
		end()
	})
}

// TestCancelledBeforeItBegan: the process is notified of a cancel only after the task: it would ignore one for an
// unknown run.
func TestCancelledBeforeItBegan(t *testing.T) {
	t.Parallel()
	f, at := newFake(t), networked()
	at.Cancel()
	r, end := f.start(t.Context(), t, at)
	f.hear(t, func(h *protocol.HostFrame) bool {
		if h.GetCancel() != nil {
			t.Error("the cancel came before the task")
		}
		return h.GetTask() != nil
	})
	f.hear(t, func(h *protocol.HostFrame) bool { return h.GetCancel() != nil })
	say(t, r, resultFrame())
	end()
}

// TestWaitsAreBounded has a process start wait after wait for what never comes.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	f, at := newFake(t), networked()
	r, end := f.start(t.Context(), t, at)
	say(t, r, timer(1, 3600_000))
	handle := f.answer(t, 1).GetNumber()
	for id := range uint32(hostcall.MaxWait) {
		say(t, r, waitFor(10+id, handle))
	}
	say(t, r, waitFor(2, handle))
	if a := f.answer(t, 2); a.GetErrno() != int32(hostcall.ErrLimit) {
		t.Errorf("one wait too many: %v", a)
	}
	say(t, r, call(3, &protocol.Call{Call: &protocol.Call_Drop{Drop: &protocol.Drop{Handle: int32(handle)}}}))
	if a := f.answer(t, 10+hostcall.MaxWait-1); a.GetErrno() != int32(hostcall.ErrInvalid) {
		t.Errorf("a wait for what was dropped: %v", a)
	}
	say(t, r, timer(4, 0))
	say(t, r, waitFor(5, f.answer(t, 4).GetNumber()))
	if a := f.answer(t, 5); a.GetErrno() != 0 {
		t.Errorf("there is room again: %v", a)
	}
	say(t, r, resultFrame())
	end()
}

// TestTalkWhileOneWaits has a thread log ten thousand lines while another waits.
func TestTalkWhileOneWaits(t *testing.T) {
	t.Parallel()
	f, at := newFake(t), networked()
	at.Limits.LogBytes = 1 << 20
	r, end := f.start(t.Context(), t, at)
	say(t, r, timer(1, 3600_000))
	say(t, r, waitFor(2, f.answer(t, 1).GetNumber()))
	for n := range 10_000 {
		say(t, r, call(0, &protocol.Call{Call: &protocol.Call_Log{Log: &protocol.Log{Line: fmt.Appendf(nil, "%05d", n)}}}))
	}
	say(t, r, resultFrame())
	end()
	if log, dropped := at.TakeLog(); len(log) != 10_000*len("info 00000\n") || dropped > 0 {
		t.Errorf("%d bytes were logged, %d lines dropped", len(log), dropped)
	}
}

// TestDeafProcess has a process that doesn't read: canceling doesn't block, and an attempt still ends when its time is
// over.
func TestDeafProcess(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*hostcall.Attempt){
		"deadline":  func(at *hostcall.Attempt) { at.Deadline = time.Now().Add(5 * time.Second) },
		"cancelled": func(at *hostcall.Attempt) { at.Deadline = time.Now().Add(5 * time.Second); at.Cancel() },
		"fiber":     func(at *hostcall.Attempt) { at.Deadline = time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gone := make(chan struct{})
				c := fakeChild(t, func([]*protocol.HostFrame) error {
					<-gone
					return errEnded
				})
				c.health = healthy{}
				w := newSupervisor(&engine{observe: noObserver{}}, "deaf", false, nil)
				go w.watch(c)
				go func() { // ends when the process is killed
					for !isDead(c) {
						time.Sleep(time.Millisecond) // of the bubble
					}
					close(gone)
					c.die()
				}()
				at := networked()
				prepare(at)
				r, began := newRun(at, stoppedTimer()), time.Now()
				c.begin(r)
				ended := make(chan ending)
				go func() {
					_, why := r.do(t.Context(), taskOf(at))
					ended <- why
				}()
				synctest.Wait()
				at.Cancel()
				if took := time.Since(began); took > 0 {
					t.Errorf("the cancel took %v", took)
				}
				why, took := <-ended, time.Since(began)
				switch {
				case name == "fiber" && (why != byDeath || took > 15*time.Second):
					t.Errorf("a fiber ended by %v after %v", why, took)
				case name != "fiber" && (why != byDeadline || took > 8*time.Second):
					t.Errorf("it ended by %v after %v", why, took)
				}
				w.end()
			})
		})
	}
}

// TestErrorsAreText has a process ask for names that are not UTF-8: the error is valid text, as otherwise
// nothing more could be sent.
func TestErrorsAreText(t *testing.T) {
	t.Parallel()
	f, at := newFake(t), networked()
	r, end := f.start(t.Context(), t, at)
	for i, request := range []string{"G\xff http://x/\n\n", "GET \xff\xfe\n\n", "GET http://x/\n\xff: 1\n\n", "\xff"} {
		id := uint32(i + 1)
		say(t, r, call(id, &protocol.Call{Call: &protocol.Call_Fetch{Fetch: &protocol.Fetch{Request: []byte(request)}}}))
		wantText(t, f.answer(t, id))
	}
	explained := &protocol.Answer{}
	explain(explained, &jobhost.Error{Code: "\xff", Field: "\xfe", Message: "a \xff"})
	wantText(t, explained)
	say(t, r, resultFrame())
	end()
}
