package pool_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestCancelIsToldThenStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := make(chan int64, 1)
		var stopped time.Time
		f := setup(t, func(ctx context.Context, n int, at *hostcall.Attempt) runtime.Result {
			time.Sleep(time.Second) // simulated: the cancel comes during this
			told <- at.Remaining()
			result := untilStopped(ctx, n, at)
			stopped = time.Now()
			return result
		})
		id := f.submit(jobhost.Spec{})
		synctest.Wait()
		cancelled := time.Now()
		f.cancel(id)
		if left := <-told; left != hostcall.Stopping {
			t.Errorf("a cancelled attempt has %d ms left, want %d", left, hostcall.Stopping)
		}
		if busy := f.pool.Busy(); busy != 1 {
			t.Errorf("%d slots are busy during the grace", busy)
		}
		time.Sleep(grace)
		synctest.Wait()
		if took := stopped.Sub(cancelled); took != grace {
			t.Errorf("the attempt was stopped after %v, want %v", took, grace)
		}
		f.wantOutcomes(jobhost.OutcomeCancelled)
		if job := f.job(id); job.State != jobhost.Cancelled {
			t.Errorf("job is %v", job.State)
		}
	})
}

func TestCancelledAttemptMayEndByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(_ context.Context, _ int, at *hostcall.Attempt) runtime.Result {
			for at.Remaining() != hostcall.Stopping {
				time.Sleep(time.Second)
			}
			return runtime.Result{Outcome: at.Outcome(nil)}
		})
		id := f.submit(jobhost.Spec{})
		synctest.Wait()
		f.cancel(id)
		time.Sleep(time.Second)
		synctest.Wait()
		if busy := f.pool.Busy(); busy != 0 {
			t.Errorf("%d slots are busy after the attempt ended", busy)
		}
		if job := f.job(id); job.State != jobhost.Cancelled {
			t.Errorf("job is %v: a cancel is final", job.State)
		}
	})
}

// A cancel that comes while the sandbox is being made, just before the guest
// ends, or after the lease was taken but before the run began, must reach its
// own attempt and no other.
func TestCancelAtTheEdgesOfARun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		// where the cancel of "first" comes from
		taken, making, ending bool
	}{
		{name: "before the run", taken: true},
		{name: "while the sandbox is made", making: true},
		{name: "as the run ends", ending: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var f *fixture
				left := map[string]int64{}
				f = setup(t, func(ctx context.Context, _ int, at *hostcall.Attempt) runtime.Result {
					left[at.Job] = at.Remaining()
					if at.Job == "first" && tt.ending {
						f.cancel("first")
					}
					if at.Job == "next" { // is longer than the grace of the first
						select {
						case <-time.After(2 * grace):
						case <-ctx.Done():
							t.Errorf("the next attempt was stopped: %v", context.Cause(ctx))
						}
					}
					return runtime.Result{Outcome: at.Outcome(nil)}
				}, func(c *settings) {
					c.Logger = slog.New(hook{func() {
						if tt.taken && f.job("first").State == jobhost.Running {
							f.cancel("first")
						}
					}})
				})
				f.plugin.instantiate = func(context.Context) error {
					if tt.making {
						f.cancel("first")
					}
					return nil
				}
				f.submit(jobhost.Spec{ID: "first"})
				f.submit(jobhost.Spec{ID: "next"})
				time.Sleep(3 * grace)
				synctest.Wait()
				if ms := left["first"]; (ms == hostcall.Stopping) == tt.ending {
					t.Errorf("the cancelled attempt had %d ms left", ms)
				}
				if ms := left["next"]; ms != time.Minute.Milliseconds() {
					t.Errorf("the next attempt had %d ms left", ms)
				}
				if a, b := f.job("first").State, f.job("next").State; a != jobhost.Cancelled || b != jobhost.Succeeded {
					t.Errorf("jobs are %v and %v", a, b)
				}
			})
		})
	}
}

// hook is a log handler that calls a function where something is logged.
type hook struct{ f func() }

func (hook) Enabled(context.Context, slog.Level) bool    { return true }
func (h hook) Handle(context.Context, slog.Record) error { h.f(); return nil }
func (h hook) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h hook) WithGroup(string) slog.Handler             { return h }

func TestStoppedWorkerReturnsItsTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, untilStopped, func(c *settings) { c.version.Size = 2 })
		id := f.submit(jobhost.Spec{Tasks: 2})
		synctest.Wait()
		f.Stop()
		f.worker.Cancel(hostcall.ErrReturned)
		synctest.Wait()
		f.wantOutcomes(jobhost.OutcomeReturned, jobhost.OutcomeReturned)
		for _, task := range f.job(id).Tasks {
			if task.State != jobhost.Ready || task.Attempt != 0 {
				t.Errorf("task %d is %v at attempt %d, want ready at 0", task.Index, task.State, task.Attempt)
			}
		}
	})
}

// A worker may be stopped while its queue stays open and full: then its slots
// must end rather than take one task after the other and give it back.
func TestStoppedWorkerLeavesWaitingTasksAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, untilStopped)
		f.submit(jobhost.Spec{Tasks: 100})
		synctest.Wait()
		f.worker.Cancel(hostcall.ErrReturned)
		report, err := f.worker.Join(t.Context())
		if err != nil || report.Status != scope.StatusCancelled {
			t.Errorf("the slots ended with %v, %v", report.Err(), err)
		}
		synctest.Wait()
		if n := len(f.outcomes()); n != 1 {
			t.Errorf("%d attempts were settled, want the one that ran", n)
		}
		if made, closed := f.plugin.sandboxes(); made != 1 || closed != 1 {
			t.Errorf("%d sandboxes were made and %d closed, want 1 and 1", made, closed)
		}
	})
}

func TestClosedQueueLetsTheRunningTaskFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(ctx context.Context, n int, at *hostcall.Attempt) runtime.Result {
			time.Sleep(time.Hour)
			return echo(ctx, n, at)
		})
		running := f.submit(jobhost.Spec{ID: "running", Timeout: 2 * time.Hour})
		waiting := f.submit(jobhost.Spec{ID: "waiting"})
		synctest.Wait()
		f.Stop()
		report, err := f.worker.Join(t.Context()) // nothing is cancelled
		if err != nil || report.Status != scope.StatusOK {
			t.Fatalf("the slots ended with %v, %v", report.Err(), err)
		}
		synctest.Wait()
		if a, b := f.job(running).State, f.job(waiting).State; a != jobhost.Succeeded || b != jobhost.Ready {
			t.Errorf("the running job is %v and the waiting one %v", a, b)
		}
		if made, closed := f.plugin.sandboxes(); made != 1 || closed != 1 {
			t.Errorf("%d sandboxes were made and %d closed, want 1 and 1", made, closed)
		}
	})
}
