//go:build !wasip1

package jobhost_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// runAs runs a handler that returns nothing.
func runAs(at jobhost.Attempt, h func(job *jobhost.Job) error) *jobhost.Result {
	return jobhost.Run(func(job *jobhost.Job) ([]byte, error) { return nil, h(job) }, at)
}

func report(after time.Duration, task int, tag string, status int32) jobhost.Report {
	return jobhost.Report{After: after, State: jobhost.State{Task: task, Tag: tag, Status: status}}
}

func TestSetState(t *testing.T) {
	t.Parallel()
	got := runAs(jobhost.Attempt{ID: "j", Task: 1, Tasks: 2}, func(job *jobhost.Job) error {
		return errors.Join(
			job.SetStarted("a"), job.SetState("a", 5, "half", []byte(`{"rows":1}`)), job.SetWarning("a", "slow\x00"),
			job.SetError("b", errors.New(strings.Repeat("ä", 4<<10))), job.SetFinished("a"),
		)
	})
	long := "🔴 " + strings.Repeat("ä", 2044) + "…"
	want := []jobhost.State{
		{Job: "j", Task: 1, Tag: "a", Status: 1, Message: "🟢 Started", Version: 1},
		{Job: "j", Task: 1, Tag: "a", Status: 5, Message: "half", Payload: []byte(`{"rows":1}`), Version: 2},
		{Job: "j", Task: 1, Tag: "a", Status: -2, Message: "🟡 slow\uFFFD", Version: 3},
		{Job: "j", Task: 1, Tag: "b", Status: -1, Message: long, Version: 1},
		{Job: "j", Task: 1, Tag: "a", Status: jobhost.StateFinished, Message: "⚫ Finished", Version: 4},
	}
	if diff := cmp.Diff(want, got.States, cmpopts.IgnoreFields(jobhost.State{}, "Time")); diff != "" || got.Err != nil {
		t.Errorf("%v: %s", got.Err, diff)
	}
}

func TestSetStateRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tag, message, payload string
		want                  error
	}{
		{"_run", "", "", jobhost.ErrDenied},
		{"", "", "", jobhost.ErrInvalid},
		{"a b", "", "", jobhost.ErrInvalid},
		{"a", "\xff", "", jobhost.ErrInvalid},
		{"a", strings.Repeat("x", 5000), "", jobhost.ErrLimit},
		{"a", "", "[]", jobhost.ErrInvalid},
		{"a", "", strings.Repeat(" ", 70_000), jobhost.ErrLimit},
	} {
		runAs(jobhost.Attempt{}, func(job *jobhost.Job) error {
			if err := job.SetState(tt.tag, 1, tt.message, []byte(tt.payload)); !errors.Is(err, tt.want) {
				t.Errorf("%.20q %.20q: %v", tt.tag, tt.message, err)
			}
			return nil
		})
	}
}

// TestGetState: the lowest state is returned; what was never reported is not started.
func TestGetState(t *testing.T) {
	t.Parallel()
	at := jobhost.Attempt{ID: "j", Tasks: 3, Reports: []jobhost.Report{
		report(0, 1, "a", 7), report(0, 2, "a", 5), report(0, 1, "b", -3), report(time.Hour, 2, "a", -9),
		{State: jobhost.State{Job: "k", Task: 1, Tag: "x", Status: 4, Message: "\"<ü\U0001F7E2\n", Payload: []byte(`{"a":[{"b":"}"}]}`)}},
	}}
	runAs(at, func(job *jobhost.Job) error {
		for _, tt := range []struct {
			name string
			opts []jobhost.StateOption
			want jobhost.State
			err  error
		}{
			{"one", []jobhost.StateOption{jobhost.WithTask(1), jobhost.WithTag("a")}, jobhost.State{Job: "j", Task: 1, Tag: "a", Status: 7, Version: 1}, nil},
			{"of a tag", []jobhost.StateOption{jobhost.WithTag("a")}, jobhost.State{Job: "j", Tag: "a"}, nil},
			{"of a task", []jobhost.StateOption{jobhost.WithTask(2)}, jobhost.State{Job: "j", Task: 2, Tag: "a", Status: 5, Version: 1}, nil},
			{"of all", nil, jobhost.State{Job: "j", Task: 1, Tag: "b", Status: -3, Version: 1}, nil},
			{"of another job", []jobhost.StateOption{jobhost.WithJob("k"), jobhost.WithTask(1)}, jobhost.State{Job: "k", Task: 1, Tag: "x", Status: 4, Message: "\"<ü\U0001F7E2\n", Payload: []byte(`{"a":[{"b":"}"}]}`), Version: 1}, nil},
			{"another way", []jobhost.StateOption{jobhost.WithTag("k/x")}, jobhost.State{Job: "k", Tag: "x"}, nil},
			{"of a job that isn't granted", []jobhost.StateOption{jobhost.WithJob("l")}, jobhost.State{}, jobhost.ErrDenied},
			{"of no job", []jobhost.StateOption{jobhost.WithJob("")}, jobhost.State{}, jobhost.ErrInvalid},
			{"of a task that isn't there", []jobhost.StateOption{jobhost.WithTask(3)}, jobhost.State{}, jobhost.ErrInvalid},
			{"of no tag", []jobhost.StateOption{jobhost.WithTag("a b")}, jobhost.State{}, jobhost.ErrInvalid},
		} {
			s, err := job.GetState(tt.opts...)
			if diff := cmp.Diff(tt.want, s, cmpopts.IgnoreFields(jobhost.State{}, "Time")); diff != "" || !errors.Is(err, tt.err) {
				t.Errorf("%s: %v %s", tt.name, err, diff)
			}
			if s.Time.IsZero() != (s.Version == 0) {
				t.Errorf("%s: reported at %v", tt.name, s.Time)
			}
		}
		return nil
	})
}

// TestWatchState: a watch can be waited for together with other pendings.
func TestWatchState(t *testing.T) {
	t.Parallel()
	at := jobhost.Attempt{Tasks: 2, HTTP: site, Reports: []jobhost.Report{
		report(2*time.Second, 1, "a", 2), report(0, 1, "a", 1), report(4*time.Second, 1, "a", 3), report(0, 1, "b", 1),
	}}
	var told []string
	got := runAs(at, func(job *jobhost.Job) error {
		watch, err := job.WatchState(jobhost.WithTag("a"))
		if err != nil {
			return err
		}
		call, err := job.Send(jobhost.Request{URL: "http://a/never"})
		if err != nil {
			return err
		}
		for range 7 {
			switch i, err := job.Wait(jobhost.Forever, call, watch, job.After(3*time.Second)); {
			case err != nil:
				return err
			case i == 2:
				told = append(told, "late")
				err = job.SetState("a", 9, "", nil)
				if err != nil {
					return err
				}
			default:
				e, err := watch.Next()
				if err != nil {
					return err
				}
				told = append(told, fmt.Sprint(e.State.Task, e.State.Status, e.Replay, e.Sentinel))
			}
		}
		watch.Drop()
		if _, err := watch.Next(); !errors.Is(err, jobhost.ErrClosed) {
			t.Errorf("after a drop: %v", err)
		}
		_, err = job.WatchState(jobhost.WithJob("other"))
		if !errors.Is(err, jobhost.ErrDenied) {
			t.Errorf("of another job: %v", err)
		}
		return nil
	})
	want := []string{"1 1 true false", "0 0 true true", "1 2 false false", "1 3 false false", "late", "0 9 false false", "late"}
	if diff := cmp.Diff(want, told); diff != "" || got.Err != nil {
		t.Errorf("%v: %s", got.Err, diff)
	}
}

func TestSynchronize(t *testing.T) {
	t.Parallel()
	reports := []jobhost.Report{
		report(time.Second, 1, "a", 1), report(2*time.Second, 2, "a", 2), report(3*time.Second, 1, "a", 2),
		{State: jobhost.State{Job: "k", Tag: "b", Status: 1}},
		{State: jobhost.State{Job: "k", Tag: "b", Status: jobhost.StateFinished}, After: time.Minute},
	}
	for _, tt := range []struct {
		name, tag string
		target    int32
		timeout   time.Duration
		lowest    int32
		after     time.Duration
		err       error
		text      string
	}{
		{"all come", "a", 2, time.Minute, 2, 3 * time.Second, nil, ""},
		{"all come, for ever", "a", 2, jobhost.Forever, 2, 3 * time.Second, nil, ""},
		{"as far as two", "a", 1, time.Minute, 1, 2 * time.Second, nil, ""},
		{"nobody has to", "c", 0, 0, 0, 0, nil, ""},
		{"too late", "a", 2, 2500 * time.Millisecond, 1, 2500 * time.Millisecond, jobhost.ErrTimeout, "synchronize a: task 1 is at 1: not in time"},
		{"no time", "c", 1, 0, 0, 0, jobhost.ErrTimeout, "synchronize c: task 0 is at 0: not in time"},
		{"another job", "k/b", jobhost.StateFinished, time.Hour, jobhost.StateFinished, time.Minute, nil, ""},
		{"a job that isn't granted", "l/b", 1, time.Hour, 0, 0, jobhost.ErrDenied, "watch state l/b: not granted"},
		{"never", "a", 9, jobhost.Forever, 2, 0, jobhost.ErrStopped, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := runAs(jobhost.Attempt{Tasks: 3, Reports: reports, Remaining: time.Hour * 24}, func(job *jobhost.Job) error {
				if err := job.SetState("a", 5, "", nil); err != nil {
					return err
				}
				s, err := job.Synchronize(tt.tag, tt.target, tt.timeout)
				if waited := 24*time.Hour - job.Remaining(); s.Status != tt.lowest || waited != tt.after && tt.err != jobhost.ErrStopped {
					t.Errorf("status %d after %v", s.Status, waited)
				}
				return err
			})
			if !errors.Is(got.Err, tt.err) || tt.text != "" && got.Err.Error() != tt.text {
				t.Errorf("%v", got.Err)
			}
			if f, ok := errors.AsType[*jobhost.Failure](got.Err); tt.err == jobhost.ErrTimeout && (!ok || f.Category != jobhost.Timeout) {
				t.Errorf("%+v", f)
			}
		})
	}
}
