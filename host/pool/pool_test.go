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
	"github.com/jobhost/jobhost/host/pool"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestTasksRunAndAreSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(ctx context.Context, n int, at *hostcall.Attempt) runtime.Result {
			at.Log(hostcall.LevelInfo, []byte("began"))
			at.Log(hostcall.LevelInfo, make([]byte, 1<<10))
			at.Log(hostcall.LevelInfo, []byte("comes after what did not fit"))
			return echo(ctx, n, at)
		})
		id := f.submit(jobhost.Spec{Payload: []byte("in"), Tasks: 3})
		synctest.Wait()
		logs, err := f.Logs(t.Context(), id)
		if err != nil || len(logs) != 3 {
			t.Fatalf("job is %v with %d logs, %v", f.job(id).State, len(logs), err)
		}
		for i, log := range logs {
			result, err := f.Result(t.Context(), id, i)
			if err != nil || string(result.Data) != "in" {
				t.Errorf("result %q, %v", result.Data, err)
			}
			if !slices.Equal(log.Lines, []string{"info began"}) || log.Dropped != 2 {
				t.Errorf("log %q with %d dropped, want one line and 2", log.Lines, log.Dropped)
			}
		}
		if made, _ := f.plugin.sandboxes(); made != 1 {
			t.Errorf("one slot made %d sandboxes for 3 tasks", made)
		}
	})
}

func TestAttemptIsWhatTheJobAndThePoolSay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		f := setup(t, func(ctx context.Context, n int, at *hostcall.Attempt) runtime.Result {
			for _, key := range []string{
				"job.id", "job.task", "job.tasks", "job.attempt", "job.priority", "worker", "label.k", "config.c", "secret.s",
			} {
				value, errno := at.Info(key)
				if errno != hostcall.OK {
					t.Errorf("%s: %v", key, errno)
				}
				seen = append(seen, value)
			}
			if left := time.Until(at.Deadline); left != 7*time.Second {
				t.Errorf("the deadline is %v away, want the job's timeout", left)
			}
			if at.Entry != "other" || string(at.Input) != "in" {
				t.Errorf("entry %q, input %q", at.Entry, at.Input)
			}
			return echo(ctx, n, at)
		}, func(c *settings) {
			c.version.Config, c.version.Secrets = map[string]string{"c": "config"}, map[string]string{"s": "secret"}
		})
		f.submit(jobhost.Spec{
			ID: "a", Payload: []byte("in"), Entry: "other", Priority: jobhost.High, Timeout: 7 * time.Second,
			Labels: map[string]string{"k": "label"},
		})
		synctest.Wait()
		if want := []string{"a", "0", "1", "1", "high", "w", "label", "config", "secret"}; !slices.Equal(seen, want) {
			t.Errorf("attempt says %q, want %q", seen, want)
		}
	})
}

// One struct serves all attempts of a slot; each must find it as if it were new.
func TestNothingOfAnAttemptReachesTheNext(t *testing.T) {
	t.Parallel()
	first := jobhost.Spec{
		ID: "first", Payload: []byte("first"), Entry: "first", Labels: map[string]string{"first": "1"},
		Priority: jobhost.Critical, Timeout: time.Second,
	}
	tests := []struct {
		name string
		run  func(f *fixture, at *hostcall.Attempt)
	}{
		{"output", func(_ *fixture, at *hostcall.Attempt) { at.AppendOutput([]byte("left over")) }},
		{"output over the limit", func(_ *fixture, at *hostcall.Attempt) { at.AppendOutput(make([]byte, 1<<20)) }},
		{"log", func(_ *fixture, at *hostcall.Attempt) { at.Log(hostcall.LevelError, []byte("left over")) }},
		{"dropped log", func(_ *fixture, at *hostcall.Attempt) { at.Log(hostcall.LevelError, make([]byte, 1<<10)) }},
		{"failure", func(_ *fixture, at *hostcall.Attempt) { at.Fail(hostcall.FailPermanent, []byte("left over")) }},
		{"snooze", func(_ *fixture, at *hostcall.Attempt) { at.Fail(hostcall.FailSnooze, []byte("1000h")) }},
		{"cancel", func(f *fixture, _ *hostcall.Attempt) { f.cancel("first") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var f *fixture
				f = setup(t, func(_ context.Context, _ int, at *hostcall.Attempt) runtime.Result {
					if at.Job == "first" {
						tt.run(f, at)
					} else if left := at.Remaining(); left != time.Minute.Milliseconds() {
						t.Errorf("the next attempt has %d ms left", left)
					} else if _, errno := at.Info("label.first"); errno != hostcall.ErrNotFound || at.Entry != "" || len(at.Input) > 0 {
						t.Errorf("the next attempt has entry %q, input %q, labels %v", at.Entry, at.Input, at.Labels)
					}
					return runtime.Result{Outcome: at.Outcome(nil)}
				})
				f.submit(first)
				next := f.submit(jobhost.Spec{})
				synctest.Wait()
				job := f.job(next)
				if job.State != jobhost.Succeeded || job.Tasks[0].ResultSize != 0 {
					t.Errorf("the next job is %v with %d bytes: %+v", job.State, job.Tasks[0].ResultSize, job.Failures)
				}
				if logs, err := f.Logs(t.Context(), next); err != nil || len(logs) != 0 {
					t.Errorf("the next job's logs are %+v, %v", logs, err)
				}
			})
		})
	}
}

func TestResultIsNotOverwrittenByTheNextAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(_ context.Context, _ int, at *hostcall.Attempt) runtime.Result {
			at.AppendOutput(at.Input)
			return runtime.Result{Outcome: at.Outcome(nil)}
		})
		// Settlements become durable while the slot is at later tasks.
		const jobs = 200
		ids := make([]string, jobs)
		for i := range ids {
			ids[i] = f.submit(jobhost.Spec{Payload: []byte(strings.Repeat(string(rune('a'+i%26)), 100))})
		}
		synctest.Wait()
		for i, id := range ids {
			result, err := f.Result(t.Context(), id, 0)
			if want := strings.Repeat(string(rune('a'+i%26)), 100); err != nil || string(result.Data) != want {
				t.Fatalf("job %d has the result %.10q…, %v; want %.10q…", i, result.Data, err, want)
			}
		}
	})
}

func TestBusyCountsRunningTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := setup(t, func(ctx context.Context, n int, at *hostcall.Attempt) runtime.Result {
			<-release
			return echo(ctx, n, at)
		}, func(c *settings) { c.version.Size = 3 })
		wantBusy := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := f.pool.Busy(); got != want {
				t.Errorf("%d of %d slots are busy, want %d", got, f.pool.Size(), want)
			}
		}
		wantBusy(0)
		f.submit(jobhost.Spec{Tasks: 2})
		wantBusy(2)
		f.submit(jobhost.Spec{Tasks: 2}) // one more than there are slots
		wantBusy(3)
		release <- struct{}{}
		wantBusy(3)
		close(release)
		wantBusy(0)
	})
}

func TestProgressIsSeenWhileTheTaskRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		behind := &services{}
		f := setup(t, func(ctx context.Context, n int, at *hostcall.Attempt) runtime.Result {
			at.Progress(3, 10)
			<-release
			return echo(ctx, n, at)
		}, func(c *settings) { c.Services = behind })
		id := f.submit(jobhost.Spec{})
		synctest.Wait()
		if task := f.job(id).Tasks[0]; task.Done != 3 || task.Total != 10 {
			t.Errorf("progress of the job is %d/%d, want 3/10", task.Done, task.Total)
		}
		if behind.done != 3 || behind.total != 10 {
			t.Errorf("the host was told %d/%d, want 3/10", behind.done, behind.total)
		}
		close(release)
	})
}

func TestStartInAScopeThatHasEnded(t *testing.T) {
	t.Parallel()
	worker := scope.New(context.Background(), "worker")
	if _, err := worker.Join(context.Background()); err != nil {
		t.Fatal(err)
	}
	f := setup(t, echo)
	p := pool.New(pool.Config{Worker: "w", Queue: f.Queue}, pool.Version{Size: 2, Plugin: f.plugin})
	err := p.Start(worker)
	if _, refused := errors.AsType[*scope.AdmissionError](err); !refused || !strings.Contains(err.Error(), "start pool of w") {
		t.Errorf("start: %v", err)
	}
}
