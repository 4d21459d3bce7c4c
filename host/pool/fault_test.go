package pool_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// A fault of an engine costs the attempt, and no other.
func TestFaultOfTheHost(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		run  runFunc // of the first sandbox
		log  string
		// what closing the broken sandbox does
		closing func()
	}{
		{"panic", func(context.Context, int, *hostcall.Attempt) runtime.Result { panic("out of bounds") }, "out of bounds", nil},
		{
			"panic, and again when it is closed",
			func(context.Context, int, *hostcall.Attempt) runtime.Result { panic("out of bounds") }, "out of bounds",
			func() { panic("still broken") },
		},
		{"no outcome", func(context.Context, int, *hostcall.Attempt) runtime.Result { return runtime.Result{} }, "no outcome", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sandboxes := map[string]int{}
				f := setup(t, func(ctx context.Context, n int, at *hostcall.Attempt) runtime.Result {
					sandboxes[at.Job] = n
					if at.Job == "first" {
						at.Log(hostcall.LevelInfo, []byte("last words"))
						return tt.run(ctx, n, at)
					}
					return echo(ctx, n, at)
				})
				f.plugin.closing = tt.closing
				f.submit(jobhost.Spec{ID: "first", MaxAttempts: 1})
				f.submit(jobhost.Spec{ID: "next"})
				synctest.Wait()
				f.plugin.closing = nil
				first := f.job("first")
				if len(first.Failures) != 1 || first.Failures[0].Code != jobhost.FailInternal || !first.Failures[0].Retryable {
					t.Fatalf("job is %v with the failures %+v", first.State, first.Failures)
				}
				if said := first.Failures[0].Message; strings.Contains(said, "bounds") {
					t.Errorf("strangers are told of the host's inside: %q", said)
				}
				logs, err := f.Logs(t.Context(), "first")
				if err != nil || len(logs) != 1 || !slices.Equal(logs[0].Lines, []string{"info last words"}) {
					t.Errorf("logs %+v, %v", logs, err)
				}
				if log := f.log.String(); !strings.Contains(log, tt.log) || !strings.Contains(log, "job=first") {
					t.Errorf("the host's log does not say %q of the job:\n%s", tt.log, log)
				}
				if state := f.job("next").State; state != jobhost.Succeeded || sandboxes["next"] != 2 {
					t.Errorf("the next job is %v in sandbox %d, want a new one", state, sandboxes["next"])
				}
			})
		})
	}
}

func TestSandboxThatCannotBeMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, echo)
		tries := 0
		f.plugin.instantiate = func(context.Context) error {
			if tries++; tries == 1 {
				return errors.New("no memory left")
			}
			return nil
		}
		f.submit(jobhost.Spec{ID: "first", MaxAttempts: 1})
		f.submit(jobhost.Spec{ID: "next"})
		synctest.Wait()
		first := f.job("first")
		if len(first.Failures) != 1 || first.Failures[0].Code != jobhost.FailStart ||
			!strings.Contains(first.Failures[0].Message, "no memory left") {
			t.Errorf("job is %v with the failures %+v", first.State, first.Failures)
		}
		if state := f.job("next").State; state != jobhost.Succeeded || tries != 2 {
			t.Errorf("the next job is %v after %d tries", state, tries)
		}
	})
}

func TestStopWhileASandboxIsMadeCountsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, echo)
		f.plugin.instantiate = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		id := f.submit(jobhost.Spec{})
		synctest.Wait()
		f.Stop()
		f.worker.Cancel(hostcall.ErrReturned)
		synctest.Wait()
		if task := f.job(id).Tasks[0]; task.State != jobhost.Ready || task.Attempt != 0 {
			t.Errorf("task is %v at attempt %d, want ready at 0", task.State, task.Attempt)
		}
	})
}

func TestRunsAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reasons []runtime.Reason
		f := setup(t, func(_ context.Context, _ int, at *hostcall.Attempt) runtime.Result {
			switch at.Entry {
			case "trap":
				return runtime.Result{Replace: runtime.ReplacedTrap, Outcome: at.Failure(jobhost.FailTrap, jobhost.CategorySystem, "unreachable")}
			case "own":
				at.Fail(hostcall.FailRetryable, []byte(`{"code": "anything-1234"}`))
				outcome, _ := at.Failed()
				return runtime.Result{Replace: runtime.ReplacedExit, Outcome: outcome}
			case "late":
				time.Sleep(time.Until(at.Deadline))
				return runtime.Result{Replace: runtime.ReplacedStopped, Outcome: at.TimedOut()}
			}
			return runtime.Result{Outcome: at.Outcome(nil)}
		}, func(c *settings) {
			c.Ran = func(r *runtime.Result) { reasons = append(reasons, r.Replace) }
		})
		for _, entry := range []string{"", "trap", "own", "", "late"} {
			f.submit(jobhost.Spec{Entry: entry, MaxAttempts: 1})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []runtime.Reason{"", runtime.ReplacedTrap, runtime.ReplacedExit, "", runtime.ReplacedStopped}; !slices.Equal(reasons, want) {
			t.Errorf("reasons %q, want %q", reasons, want)
		}
		if made, closed := f.plugin.sandboxes(); made != 3 || closed != 3 {
			t.Errorf("%d sandboxes were made and %d closed, want 3 and 3", made, closed)
		}
	})
}
