package process

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

// fakeSupervisor is a supervisor whose processes are parts of the test; start is called for each.
func fakeSupervisor(t *testing.T, start func(context.Context) (*child, error)) *supervisor {
	t.Helper()
	e, err := newEngine(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := newSupervisor(e, "fake", false, start)
	first, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first.process.cmd.Process = nil
	c.places = []*place{{child: first}}
	t.Cleanup(func() {
		c.stop()
		if err := e.close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// listening starts processes that accept everything, and do nothing.
func listening(t *testing.T) func(context.Context) (*child, error) {
	return func(context.Context) (*child, error) { return newFake(t).child, nil }
}

// TestSuspectsDontWaitForFibers has a fiber run alone and never end: other suspects run at the same time.
func TestSuspectsDontWaitForFibers(t *testing.T) {
	t.Parallel()
	c := fakeSupervisor(t, listening(t))
	fiber, task := runtimetest.Attempt("", ""), runtimetest.Attempt("", "")
	fiber.Job, fiber.Deadline = "fiber", time.Time{}
	leave, err := c.enterAlone(t.Context(), newRun(fiber, stoppedTimer()))
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	done, err := c.enterAlone(t.Context(), newRun(task, stoppedTimer()))
	if err != nil {
		t.Fatal(err)
	}
	done()
}

// TestSuspectIsCancelled cancels a suspect that waits for another: it ends at once.
func TestSuspectIsCancelled(t *testing.T) {
	t.Parallel()
	c := fakeSupervisor(t, listening(t))
	other, at := runtimetest.Attempt("", ""), runtimetest.Attempt("", "")
	other.Job = "other"
	leave, err := c.enterAlone(t.Context(), newRun(other, stoppedTimer()))
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	c.suspect(at)
	i := c.join()
	ended := make(chan jobhost.Outcome)
	go func() { ended <- i.Run(t.Context(), at).Outcome }()
	at.Cancel()
	if o := <-ended; o.Kind != jobhost.OutcomeCancelled {
		t.Errorf("%v %v", o.Kind, o.Failure)
	}
	if !c.takeSuspect(at) {
		t.Error("it isn't suspect any more, though it has not run")
	}
}

// TestStartsThatFailSlowly: a plugin whose process fails to start is disabled even if each failure takes so long that
// too few of them fall within the period.
func TestStartsThatFailSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, starts := newFake(t).child, 0
		c := newSupervisor(&engine{logger: discard(), observe: noObserver{}}, "slow", false, func(context.Context) (*child, error) {
			starts++
			time.Sleep(failureTime) // of the bubble
			return nil, errors.New("no")
		})
		told := make(chan string, 10)
		c.onDisabled(func(reason string) { told <- reason })
		m := &place{child: first}
		c.places = []*place{m}
		m.child = nil
		c.wait.Go(func() { c.supervise(m) })
		if reason := <-told; starts != 5 {
			t.Errorf("disabled after %d starts: %s", starts, reason)
		}
		c.stop()
	})
}

// TestTellInOrder rapidly disables and enables a plugin many times: the last notification is the current state.
func TestTellInOrder(t *testing.T) {
	t.Parallel()
	c := fakeSupervisor(t, listening(t))
	var last atomic.Value
	c.onDisabled(func(reason string) { last.Store(reason) })
	for range 200 {
		var both sync.WaitGroup
		for range maxFailures {
			both.Go(func() { c.failed("test") })
		}
		both.Go(c.enable)
		both.Wait()
		c.mu.Lock()
		want := c.disabled
		c.mu.Unlock()
		if got, _ := last.Load().(string); got != want {
			t.Fatalf("it was notified of %q, and is %q", got, want)
		}
		c.enable()
	}
	c.onDisabled(nil)
	last.Store("nothing")
	for range maxFailures {
		c.failed("test")
	}
	if got := last.Load(); got != "nothing" {
		t.Errorf("a removed function was called with %q", got)
	}
}

// TestCloseWhileStarting ends a start in progress when it is no longer needed.
func TestCloseWhileStarting(t *testing.T) {
	t.Parallel()
	e, err := newEngine(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.close() }()
	path, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(hostcall.ErrReturned) })
	began := time.Now()
	_, err = e.startChild(ctx, &command{path: path, args: []string{"sleep", "60"}, line: func(string) {}, sys: sandboxAttributes()}, time.Minute)
	if !errors.Is(err, hostcall.ErrReturned) || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// TestHammerEnds has deadlines, cancels, ends of contexts, results and the death of the process coincide. Sleeps shift
// their moments against each other from round to round; nothing waits for them.
func TestHammerEnds(t *testing.T) {
	t.Parallel()
	for n := range 300 {
		f := newFake(t)
		var runs sync.WaitGroup
		for i := range 4 {
			at := networked()
			at.Deadline = time.Now().Add(time.Duration(n%7) * 300 * time.Microsecond)
			if i == 0 {
				at.Deadline = time.Time{}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			r, end := f.start(ctx, t, at)
			runs.Go(func() { at.Cancel() })
			runs.Go(func() {
				say(t, r, timer(1, 1))
				say(t, r, waitFor(2, 1<<20))
				if n%3 == 0 {
					say(t, r, resultFrame())
					say(t, r, resultFrame()) // twice
					say(t, r, timer(3, 1))
				}
			})
			runs.Go(func() {
				time.Sleep(time.Duration(n%5) * 200 * time.Microsecond)
				cancel(hostcall.ErrReturned)
			})
			runs.Go(func() { end() })
		}
		runs.Go(func() {
			time.Sleep(time.Duration(n%11) * 200 * time.Microsecond)
			f.killFor(&run{id: 1})
			f.die()
		})
		runs.Wait()
		if f.held != 0 || f.partial != 0 || len(f.runs) != 0 {
			t.Fatalf("left: %d bytes held, %d of pieces, %d runs", f.held, f.partial, len(f.runs))
		}
	}
}
