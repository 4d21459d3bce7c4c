package fiber_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/hub"
	"github.com/jobhost/jobhost/host/op"
)

// TestRefusalsOfSubmit come in one order: unknown, paused, ending, full.
func TestRefusalsOfSubmit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		want := func(code jobhost.Code, ended bool) {
			t.Helper()
			wantCode(t, f.SendFiber(t.Context(), "a", []byte("x"), false), code, ended)
		}
		want(jobhost.CodeNotFound, false)
		f.start("a", deaf)
		synctest.Wait()
		for range 3 {
			f.submit("a", "x")
		}
		want(jobhost.CodeExhausted, false)
		if f.refused[fiber.LimitInput] != 1 {
			t.Errorf("refused %v", f.refused)
		}
		_, _ = f.PauseFiber(t.Context(), "a")
		want(jobhost.CodeConflict, false)
		_, _ = f.InterruptFiber(t.Context(), "a")
		want(jobhost.CodeConflict, false)
		_, _ = f.ResumeFiber(t.Context(), "a")
		want(jobhost.CodeNotFound, true) // full as well
		if end := f.end("a"); end.Waiting != 3 || end.Received != 3 {
			t.Errorf("it ended with %d of %d messages unread", end.Waiting, end.Received)
		}
		want(jobhost.CodeNotFound, true)
		wantCode(t, f.SendFiber(t.Context(), "a", make([]byte, jobhost.MaxFiberMessage+1), true), jobhost.CodeTooLarge, false)
	})
}

// TestInputIsBoundedInBytes but for one message that finds the queue empty.
func TestInputIsBoundedInBytes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		f.start("a", deaf)
		f.submit("a", strings.Repeat("x", 1000))
		wantCode(t, f.SendFiber(t.Context(), "a", []byte("x"), false), jobhost.CodeExhausted, false)
		f.start("b", deaf)
		f.submit("b", strings.Repeat("x", 60))
		wantCode(t, f.SendFiber(t.Context(), "b", make([]byte, 41), false), jobhost.CodeExhausted, false)
		f.submit("b", strings.Repeat("x", 40))
	})
}

// onDemand is a body that takes a message on command.
type onDemand struct{ next, took chan string }

func (d *onDemand) body(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
	for {
		select {
		case <-d.next:
			message, _ := op.Perform(ctx, f.Recv())
			d.took <- string(message)
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (d *onDemand) take() string {
	d.next <- ""
	return <-d.took
}

// TestSubmitWaits: waiting senders are served strictly in order.
func TestSubmitWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		d := &onDemand{make(chan string), make(chan string)}
		f.start("a", d.body)
		for _, m := range []string{"1", "2", "3"} {
			f.submit("a", m)
		}
		ctx, cancel := context.WithCancel(t.Context())
		send := func(ctx context.Context, message string) <-chan error {
			done := make(chan error, 1)
			go func() { done <- f.SendFiber(ctx, "a", []byte(message), true) }()
			synctest.Wait()
			return done
		}
		large, small, last := send(ctx, strings.Repeat("x", 99)), send(t.Context(), "4"), send(t.Context(), "5")
		if got := d.take(); got != "1" {
			t.Errorf("took %q", got)
		}
		synctest.Wait()
		// There is room for a small one, but a large one comes first.
		wantCode(t, f.SendFiber(t.Context(), "a", []byte("x"), false), jobhost.CodeExhausted, false)
		cancel()
		if err := <-large; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
		if err := <-small; err != nil {
			t.Error(err)
		}
		if got := d.take() + d.take() + d.take() + d.take(); got != "2345" {
			t.Errorf("took %q", got)
		}
		if err := <-last; err != nil {
			t.Error(err)
		}
	})
}

// TestWaitingSubmitIsAnswered by a pause and by the end.
func TestWaitingSubmitIsAnswered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		do    func(*fixture)
		code  jobhost.Code
		ended bool
	}{
		{"pause", func(f *fixture) { _, _ = f.PauseFiber(t.Context(), "a") }, jobhost.CodeConflict, false},
		{"interrupt", func(f *fixture) { _, _ = f.InterruptFiber(t.Context(), "a") }, jobhost.CodeNotFound, true},
		{"stop of the host", func(f *fixture) { f.root.Cancel(nil) }, jobhost.CodeNotFound, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := setup(t)
				f.start("a", deaf)
				for range 3 {
					f.submit("a", "x")
				}
				done := make(chan error, 1)
				go func() { done <- f.SendFiber(t.Context(), "a", []byte("x"), true) }()
				synctest.Wait()
				tt.do(f)
				wantCode(t, <-done, tt.code, tt.ended)
			})
		})
	}
}

// TestGuestInput is how those wait who can't perform ops.
func TestGuestInput(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		rung := make(chan struct{}, 10)
		var got []string
		f.start("a", func(_ context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
			for {
				f.Ring(func() { rung <- struct{}{} })
				f.Waiting(true)
				<-rung
				f.Waiting(false)
				if !f.Ready() {
					t.Error("it was rung and isn't ready")
				}
				for {
					message, ok, err := f.Take()
					if errors.Is(err, fiber.ErrInputClosed) && !ok {
						return nil, nil
					}
					if !ok {
						break
					}
					got = append(got, string(message))
				}
			}
		})
		f.wantStatus("a", jobhost.FiberIdle)
		f.submit("a", "1")
		f.wantStatus("a", jobhost.FiberIdle)
		f.submit("a", "2")
		f.submit("a", "3")
		synctest.Wait()
		if len(rung) != 0 {
			t.Error("it was rung more than once")
		}
		_, _ = f.InterruptFiber(t.Context(), "a")
		f.end("a")
		if strings.Join(got, "") != "123" {
			t.Errorf("got %q", got)
		}
	})
}

// TestInterruptedInput: what was sent before is received, then the end.
func TestInterruptedInput(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		g := make(gate)
		var got []string
		f.start("a", func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
			<-g
			for {
				message, err := op.Perform(ctx, f.Recv())
				if err != nil {
					got = append(got, err.Error())
					return nil, nil
				}
				got = append(got, string(message))
			}
		})
		f.submit("a", "1")
		f.submit("a", "2")
		synctest.Wait()
		began := time.Now()
		_, _ = f.InterruptFiber(t.Context(), "a")
		close(g)
		f.end("a")
		if want := "1 2 " + fiber.ErrInputClosed.Error(); strings.Join(got, " ") != want || time.Since(began) != 0 {
			t.Errorf("got %q after %v", got, time.Since(began))
		}
	})
}

// TestSubscribe: from now on, with the past if asked for, until the end.
func TestSubscribe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		_, err := f.Subscribe(jobhost.FiberQuery{ID: "a"})
		wantCode(t, err, jobhost.CodeNotFound, false)
		f.start("a", echo)
		say := func(words ...string) {
			for _, w := range words {
				f.submit("a", w)
				synctest.Wait()
			}
		}
		watch := func(q jobhost.FiberQuery) func() (string, error) {
			q.ID = "a"
			var got []string
			var end error
			done := make(chan struct{})
			go func() {
				defer close(done)
				for o, err := range f.WatchFiber(t.Context(), q) {
					if end = err; err == nil {
						got = append(got, string(o.Data))
					}
				}
			}()
			synctest.Wait()
			return func() (string, error) { <-done; return strings.Join(got, " "), end }
		}
		say("1", "2", "3", "4", "5", "6")
		live := watch(jobhost.FiberQuery{})
		all := watch(jobhost.FiberQuery{Replay: true})
		some := watch(jobhost.FiberQuery{Replay: true, After: 4})
		if n := f.get("a").Subscribers; n != 3 {
			t.Errorf("%d subscribers", n)
		}
		say("7")
		_, _ = f.InterruptFiber(t.Context(), "a")
		for name, tt := range map[string]struct {
			watch func() (string, error)
			want  string
		}{"live": {live, "7"}, "all": {all, "3 4 5 6 7"}, "some": {some, "5 6 7"}} {
			got, err := tt.watch()
			if wantCode(t, err, jobhost.CodeNotFound, true); got != tt.want || !strings.Contains(err.Error(), "interrupted") {
				t.Errorf("%s: %q until %v, want %q", name, got, err, tt.want)
			}
		}
		if end := f.end("a"); end.Emitted != 7 || end.Subscribers != 0 {
			t.Errorf("it ended as %+v", end)
		}
		if _, err = watch(jobhost.FiberQuery{})(); !errors.Is(err, jobhost.ErrFiberEnded) {
			t.Errorf("of a fiber that has ended: %v", err)
		}
	})
}

// TestReasonOfTheEnd is what subscriptions end with, those too that nothing was
// ever published to.
func TestReasonOfTheEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		body fiber.Body
		want string
	}{
		{"completed", returns(""), jobhost.ErrFiberEnded.Error()},
		{"failed", fails, "the fiber has failed: it is broken: the fiber has ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := setup(t)
				g := make(gate)
				f.start("a", func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
					<-g
					return tt.body(ctx, f)
				})
				outputs, err := f.Subscribe(jobhost.FiberQuery{ID: "a"})
				if err != nil {
					t.Fatal(err)
				}
				defer outputs.Close()
				close(g)
				_, err = outputs.Next(t.Context())
				if !errors.Is(err, jobhost.ErrFiberEnded) || err.Error() != tt.want {
					t.Errorf("it ended with %v", err)
				}
				if exactly := err == jobhost.ErrFiberEnded; exactly != (tt.name == "completed") {
					t.Errorf("exactly ErrFiberEnded: %v", exactly)
				}
			})
		})
	}
}

func TestSlowReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		f.start("a", echo)
		outputs, _ := f.Subscribe(jobhost.FiberQuery{ID: "a"})
		defer outputs.Close()
		for range 9 {
			f.submit("a", "x")
			synctest.Wait()
		}
		if err := outputs.Err(); !errors.Is(err, hub.ErrSlow) || f.refused[fiber.LimitReader] != 1 {
			t.Errorf("ended with %v, refused %v", err, f.refused)
		}
	})
}

// TestEmit: too large, and too late.
func TestEmit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		var kept *fiber.Fiber
		f.start("a", func(_ context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
			kept = f
			wantCode(t, f.Emit(make([]byte, jobhost.MaxFiberMessage+1)), jobhost.CodeTooLarge, false)
			return nil, nil
		})
		f.end("a")
		wantCode(t, kept.Emit([]byte("late")), jobhost.CodeNotFound, true)
	})
}
