package fiber_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
)

// TestRestarts: when, how often, and what comes of it.
func TestRestarts(t *testing.T) {
	t.Parallel()
	second := jobhost.Duration(time.Second)
	after := func(d time.Duration, body fiber.Body) fiber.Body {
		return func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
			time.Sleep(d)
			return body(ctx, f)
		}
	}
	panics := func(context.Context, *fiber.Fiber) ([]byte, *jobhost.Failure) { panic("oh") }
	for _, tt := range []struct {
		name   string
		policy jobhost.RestartPolicy
		body   fiber.Body
		begins string // seconds from the start to each run
		status jobhost.FiberStatus
		code   string
	}{
		{"never", jobhost.RestartPolicy{}, fails, "[0]", jobhost.FiberFailed, "broken"},
		{"on failure", jobhost.RestartPolicy{When: jobhost.RestartOnFailure}, fails, "[0 1 3 7 15 31]", jobhost.FiberFailed, "broken"},
		{"not on success", jobhost.RestartPolicy{When: jobhost.RestartOnFailure}, returns("x"), "[0]", jobhost.FiberCompleted, ""},
		{"panics are failures", jobhost.RestartPolicy{When: jobhost.RestartOnFailure, Intensity: 1}, panics, "[0 1]", jobhost.FiberFailed, jobhost.FailInternal},
		{
			"always",
			jobhost.RestartPolicy{When: jobhost.RestartAlways, Intensity: 2},
			returns("x"), "[0 1 3]",
			jobhost.FiberFailed, jobhost.FailLimit,
		},
		{
			"up to max",
			jobhost.RestartPolicy{When: jobhost.RestartAlways, Initial: 2 * second, Max: 5 * second, Intensity: 4},
			fails,
			"[0 2 6 11 16]", jobhost.FiberFailed, "broken",
		},
		{
			"the window moves on",
			jobhost.RestartPolicy{When: jobhost.RestartAlways, Intensity: 2, Within: 3 * second},
			fails, "[0 1 3 7 15 31 63 123 183 243 303]", "", "",
		},
		{
			"a good run begins anew",
			jobhost.RestartPolicy{When: jobhost.RestartAlways, Intensity: 2, Within: 10 * second},
			after(10*time.Second, fails), "[0 11 22 33 44 55 66 77 88 99 110]", "", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := setup(t)
				s := spec("a")
				s.Restart = tt.policy
				began := time.Now()
				var begins []int
				f.startSpec(s, func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
					if begins = append(begins, int(time.Since(began)/time.Second)); f.Restarts() != len(begins)-1 {
						t.Errorf("run %d finds %d restarts", len(begins), f.Restarts())
					}
					return tt.body(ctx, f)
				})
				if tt.status == "" { // for ever
					time.Sleep(6 * time.Minute)
					synctest.Wait()
					begins = begins[:min(len(begins), 11)]
				} else if end := f.end("a"); end.Status != tt.status || end.Restarts != len(begins)-1 || codeOf(end.Failure) != tt.code {
					t.Errorf("it ended as %+v %+v", end, end.Failure)
				}
				if got := fmt.Sprint(begins); got != tt.begins {
					t.Errorf("runs began at %s, want %s", got, tt.begins)
				}
				if tt.status != "" {
					f.wantTerminated("a", 1)
				}
			})
		})
	}
}

func codeOf(f *jobhost.Failure) string {
	if f == nil {
		return ""
	}
	return f.Code
}

// TestRestartKeeps the input, the subscribers, the permit and the pause.
func TestRestartKeeps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t, func(c *fiber.Config) { c.Max = 1 })
		s := spec("a")
		s.Restart.When = jobhost.RestartOnFailure
		f.startSpec(s, func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
			message, _, _ := f.Take()
			_ = f.Emit(message)
			if f.Restarts() < 2 {
				return fails(ctx, f)
			}
			return nil, nil
		})
		outputs, err := f.Subscribe(jobhost.FiberQuery{ID: "a", Replay: true})
		if err != nil {
			t.Fatal(err)
		}
		waiting := f.begin(t.Context(), "b", returns(""))
		f.wantStatus("a", jobhost.FiberStarting) // for the next time
		if got := f.get("a"); codeOf(got.Failure) != "broken" {
			t.Errorf("why it is started again: %+v", got.Failure)
		}
		f.wantStatus("b", jobhost.FiberStarting)
		f.submit("a", "1")
		f.submit("a", "2")
		if again := f.startSpec(s, fails); again.Status != jobhost.FiberStarting {
			t.Errorf("a second start finds it %s", again.Status)
		}
		_, _ = f.PauseFiber(t.Context(), "a")
		time.Sleep(time.Second)
		f.wantStatus("a", jobhost.FiberPaused)
		if end := f.end("a"); end.Restarts != 2 || end.Status != jobhost.FiberCompleted {
			t.Errorf("it ended as %+v", end)
		}
		var got []string
		for {
			item, err := outputs.Next(t.Context())
			if errors.Is(err, jobhost.ErrFiberEnded) {
				break
			}
			got = append(got, fmt.Sprintf("%d:%s", item.Seq, item.Value.Data))
		}
		if !slices.Equal(got, []string{"1:", "2:1", "3:2"}) {
			t.Errorf("it published %q", got)
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		if f.restarted != 2 || f.started != 2 {
			t.Errorf("%d starts and %d restarts were counted", f.started, f.restarted)
		}
	})
}

// TestRestartOfOneThatWaited: a run does not begin as one that waits.
func TestRestartOfOneThatWaited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		s := spec("a")
		s.Restart.When = jobhost.RestartOnFailure
		rung, g := 0, make(gate)
		f.startSpec(s, func(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
			if f.Restarts() == 0 {
				f.Waiting(true)
				f.Ring(func() { rung++ })
				return fails(ctx, f)
			}
			return g.body(ctx, f)
		})
		time.Sleep(time.Second)
		f.wantStatus("a", jobhost.FiberRunning)
		if f.submit("a", "x"); rung != 0 {
			t.Error("the bell of an earlier run was rung")
		}
		close(g)
		f.end("a")
	})
}

// TestInterruptBeforeRestart: it is not started again.
func TestInterruptBeforeRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		s := spec("a")
		s.Restart = jobhost.RestartPolicy{When: jobhost.RestartAlways, Initial: jobhost.Duration(time.Minute)}
		f.startSpec(s, fails)
		f.wantStatus("a", jobhost.FiberStarting)
		began := time.Now()
		_, _ = f.InterruptFiber(t.Context(), "a")
		if end := f.end("a"); end.Status != jobhost.FiberKilled || end.Restarts != 0 || time.Since(began) != 0 {
			t.Errorf("after %v it ended as %+v", time.Since(began), end)
		}
	})
}

// TestIntensityIsTold: the failure says why the fiber isn't restarted.
func TestIntensityIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := setup(t)
		s := spec("a")
		s.Restart = jobhost.RestartPolicy{When: jobhost.RestartOnFailure, Intensity: 1}
		f.startSpec(s, fails)
		end := f.end("a")
		if !strings.Contains(end.Failure.Message, "it is broken; it was restarted 1 times within 1m0s") || f.refused[fiber.LimitRestarts] != 1 {
			t.Errorf("failure %q, refused %v", end.Failure.Message, f.refused)
		}
		synctest.Wait()
	})
}
