package fiber_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/op"
)

// TestPause hides whether the fiber works, and lets it go on.
func TestPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		g := make(gate)
		f.start("a", func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
			_, _ = op.Perform(ctx, f.Recv())
			return g.body(ctx, f)
		})
		f.wantStatus("a", jobhost.FiberIdle)
		for range 2 { // the second time it is so already
			if got, err := f.PauseFiber(t.Context(), "a"); err != nil || got.Status != jobhost.FiberPaused {
				t.Errorf("pause: %s %v", got.Status, err)
			}
		}
		for range 2 {
			if got, err := f.ResumeFiber(t.Context(), "a"); err != nil || got.Status != jobhost.FiberIdle {
				t.Errorf("resume: %s %v", got.Status, err)
			}
		}
		f.submit("a", "x")
		f.wantStatus("a", jobhost.FiberRunning)
		_, _ = f.PauseFiber(t.Context(), "a")
		f.wantStatus("a", jobhost.FiberPaused)
		if got, _ := f.ResumeFiber(t.Context(), "a"); got.Status != jobhost.FiberRunning {
			t.Errorf("after the pause it is %s", got.Status)
		}
		_, _ = f.PauseFiber(t.Context(), "a")
		close(g)
		f.wantStatus("a", jobhost.FiberCompleted)
		_, err := f.ResumeFiber(t.Context(), "a")
		wantCode(t, err, jobhost.CodeConflict, true)
		_, err = f.PauseFiber(t.Context(), "unknown")
		wantCode(t, err, jobhost.CodeNotFound, false)
	})
}

// TestInterrupt: the body is notified at once, and stopped after the grace period.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	told := func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
		_, _ = op.Perform(ctx, f.Interrupted())
		return []byte("ignored"), nil
	}
	called := func(_ context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
		bell := make(chan struct{}, 2)
		f.OnInterrupt(func() { bell <- struct{}{} })
		<-bell
		f.OnInterrupt(func() { bell <- struct{}{} }) // at once
		<-bell
		return nil, &jobhost.Failure{Code: "ignored"}
	}
	for _, tt := range []struct {
		name string
		body fiber.Body
		want time.Duration
	}{
		{"by an op", told, 0},
		{"by a call", called, 0},
		{"by the end of its input", echo, 0},
		{"by its context", deaf, grace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := setup(t)
				f.start("a", tt.body)
				synctest.Wait()
				began := time.Now()
				for range 2 {
					if got, err := f.InterruptFiber(t.Context(), "a"); err != nil || got.Status.Ended() {
						t.Errorf("interrupt: %s %v", got.Status, err)
					}
				}
				end := f.end("a")
				if end.Status != jobhost.FiberKilled || end.Failure.Code != fiber.FailInterrupted || end.Result != nil {
					t.Errorf("it ended as %+v", end)
				}
				if d := time.Since(began); d != tt.want {
					t.Errorf("it ended after %v, want %v", d, tt.want)
				}
				again, err := f.InterruptFiber(t.Context(), "a")
				if err != nil || again.EndedAt != end.EndedAt {
					t.Errorf("interrupt after the end: %+v %v", again, err)
				}
				f.wantTerminated("a", 1)
			})
		})
	}
	t.Run("unknown", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			_, err := setup(t).InterruptFiber(t.Context(), "a")
			wantCode(t, err, jobhost.CodeNotFound, false)
		})
	})
}

// TestInterruptCountsOnce: what comes after it changes nothing.
func TestInterruptCountsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		told := 0
		f.start("a", func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
			f.OnInterrupt(func() { told++ })
			return deaf(ctx, f)
		})
		synctest.Wait()
		began := time.Now()
		_, _ = f.InterruptFiber(t.Context(), "a")
		time.Sleep(grace / 2)
		_, _ = f.InterruptFiber(t.Context(), "a")
		f.Stop()
		end := f.end("a")
		if d := time.Since(began); told != 1 || d != grace || end.Failure.Code != fiber.FailInterrupted {
			t.Errorf("it was told %d times, and ended after %v as %+v", told, d, end.Failure)
		}
	})
}

// TestCleanup: everything happens in one order.
func TestCleanup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t, func(c *fiber.Config) { c.Max = 1 })
		var order []string
		note := func(what string) { order = append(order, what) }
		g := make(gate)
		var inside *fiber.Fiber
		body := func(ctx context.Context, self *fiber.Fiber) ([]byte, *jobhost.Failure) {
			inside = self
			defer note("exit")
			return g.body(ctx, self)
		}
		next := make(chan error, 1)
		var outputs interface{ Err() error }
		_, err := f.Start(t.Context(), spec("a"), body, func(end jobhost.Fiber) error {
			note("on_terminate " + string(end.Status))
			// The fiber is still there, with its hub, what it has not read, and its permit.
			if message, ok, err := inside.Take(); !ok || err != nil {
				t.Errorf("its input is %q %v %v", message, ok, err)
			}
			if got := f.get("a"); got.Status.Ended() || outputs.Err() != nil || f.Stats().Live != 1 {
				t.Errorf("in on_terminate it is %+v, subscriptions %v", got, outputs.Err())
			}
			// What came now would be lost.
			wantCode(t, f.SendFiber(t.Context(), "a", []byte("x"), true), jobhost.CodeNotFound, true)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		f.submit("a", "x")
		if outputs, err = f.Subscribe(jobhost.FiberQuery{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := f.Start(t.Context(), spec("b"), func(context.Context, *fiber.Fiber) ([]byte, *jobhost.Failure) {
				note("permit")
				if got := f.get("a"); got.Status != jobhost.FiberCompleted || outputs.Err() == nil {
					t.Errorf("when its permit is passed on it is %s, subscriptions %v", got.Status, outputs.Err())
				}
				return nil, nil
			}, nil)
			next <- err
		}()
		synctest.Wait()
		close(g)
		if err := <-next; err != nil {
			t.Error(err)
		}
		f.end("b")
		if want := []string{"exit", "on_terminate completed", "permit"}; !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
	})
}

// TestOnTerminateFails: the fiber ends as it did.
func TestOnTerminateFails(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]fiber.OnTerminate{
		"panic": func(jobhost.Fiber) error { panic("oh") },
		"error": func(jobhost.Fiber) error { return errors.New("oh") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := setup(t)
				for range 3 { // each gets a permit
					if _, err := f.Start(t.Context(), spec("a"), returns("fine"), hook); err != nil {
						t.Fatal(err)
					}
					if end := f.end("a"); string(end.Result) != "fine" || end.Status != jobhost.FiberCompleted {
						t.Errorf("it ended as %+v", end)
					}
				}
				if n := strings.Count(f.log.String(), "on_terminate of a fiber has failed"); n != 3 {
					t.Errorf("logged %d times: %s", n, f.log.String())
				}
			})
		})
	}
}

// TestHostStops: fibers end as killed, and none begins.
func TestHostStops(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		stop  func(*fixture)
		lasts time.Duration
	}{
		{"cancelled", func(f *fixture) { f.root.Cancel(errors.New("enough")) }, 0},
		{"told first", func(f *fixture) { f.Stop() }, grace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := setup(t)
				s := spec("a")
				s.Restart.When = jobhost.RestartAlways
				f.startSpec(s, deaf)
				s.ID = "resting"
				f.startSpec(s, fails)
				waiting := f.begin(t.Context(), "waiting", deaf)
				synctest.Wait()
				began := time.Now()
				tt.stop(f)
				wantCode(t, <-waiting, jobhost.CodeUnavailable, false)
				_, err := f.Start(t.Context(), spec("late"), deaf, nil)
				wantCode(t, err, jobhost.CodeUnavailable, false)
				for _, id := range []string{"a", "resting"} {
					if end := f.end(id); end.Status != jobhost.FiberKilled || end.Failure.Code != fiber.FailStopped {
						t.Errorf("%s ended as %+v", id, end)
					}
					f.wantTerminated(id, 1)
				}
				if d := time.Since(began); d != tt.lasts {
					t.Errorf("it took %v, want %v", d, tt.lasts)
				}
				f.wantTerminated("waiting", 0)
			})
		})
	}
}

// TestJoinWithoutCancel waits for fibers and starts none again.
func TestJoinWithoutCancel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t, func(c *fiber.Config) { c.Max = 1 })
		g := make(gate)
		s := spec("a")
		s.Restart.When = jobhost.RestartAlways
		f.startSpec(s, g.body)
		waiting := f.begin(t.Context(), "b", deaf)
		synctest.Wait()
		joined := f.root.JoinOp()
		go func() { _, _ = op.PerformRaw(joined) }()
		synctest.Wait()
		close(g)
		if end := f.end("a"); end.Status != jobhost.FiberKilled || end.Failure.Code != fiber.FailStopped {
			t.Errorf("it ended as %+v", end)
		}
		wantCode(t, <-waiting, jobhost.CodeUnavailable, false)
	})
}
