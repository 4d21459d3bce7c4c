package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// stateHost runs guests.States as "test", and as "other" and "friend", of which
// "friend" may see the states of jobs of "test". said gets what guests emit.
func stateHost(t *testing.T, change ...func(*host.Config)) (h *hosttest.Host, said chan string) {
	t.Helper()
	said = make(chan string, 100)
	cfg := config(t)
	store := statetest.NewMemory()
	cfg.States = store
	cfg.OnEvent = func(e jobhost.Event) {
		if e.Kind == jobhost.EventOutput {
			said <- string(e.Data)
		}
	}
	test := cfg.Workers[0]
	test.Plugin, test.Entry, test.PoolSize = guests.States, "set", 4
	other, friend := test, test
	other.Name = "other"
	friend.Name, friend.MayWatch = "friend", []string{"test"}
	cfg.Workers = []host.Worker{test, other, friend}
	for _, c := range change {
		c(&cfg)
	}
	h, _ = run(t, cfg)
	return h, said
}

// submitTo submits a job to any worker.
func submitTo(t *testing.T, h *hosttest.Host, spec jobhost.Spec) string {
	t.Helper()
	receipt, err := h.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.ID
}

// resultOf returns what a job's only task returned.
func resultOf(t *testing.T, h *hosttest.Host, id string) string {
	t.Helper()
	if job := wait(t, h, id); job.State != jobhost.Succeeded {
		t.Fatalf("job %s is %v: %+v", id, job.State, job.Failures)
	}
	result, err := h.Result(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Data)
}

// TestGuestReports: what a guest sets everybody sees, at once and durably.
func TestGuestReports(t *testing.T) {
	t.Parallel()
	h, _ := stateHost(t)
	id := submitTo(t, h, jobhost.Spec{Worker: "test", Payload: []byte("ingest\n2\nhalf\n" + `{"rows":5}`)})
	if got := resultOf(t, h, id); got != "0" {
		t.Fatalf("it was answered %s", got)
	}
	report, err := h.States(t.Context(), jobhost.StateQuery{Job: id, Tag: "ingest"})
	if err != nil || len(report.States) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	s := report.States[0]
	if s.JobID != id || s.TaskID != 0 || s.Status != 2 || s.Message != "half" || string(s.Payload) != `{"rows":5}` || s.Version != 1 || s.Timestamp.IsZero() || s.EventID == "" {
		t.Errorf("%+v", s)
	}
	// It stands although the attempt fails: states are no effects.
	id = submitTo(t, h, jobhost.Spec{Worker: "test", Entry: "set_fail", Payload: []byte("ingest\n2\n\n"), MaxAttempts: 3})
	wait(t, h, id)
	if report, err = h.States(t.Context(), jobhost.StateQuery{Job: id, Tag: "ingest"}); err != nil || report.State.Version != 3 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestTasksMeet: the tasks of a job wait for each other at a barrier.
func TestTasksMeet(t *testing.T) {
	t.Parallel()
	h, _ := stateHost(t)
	// Both tasks wait until nobody is below 5, and nobody has reported anything.
	id := submitTo(t, h, jobhost.Spec{Worker: "test", Entry: "barrier", Tasks: 2, Payload: []byte("meet\n5")})
	for task := range 2 {
		s := jobhost.TaskState{JobID: id, TaskID: task, Tag: "meet", Status: int32(5 + task), Message: fmt.Sprint("task ", task)}
		if _, err := h.SetState(t.Context(), "", s, 0); err != nil {
			t.Fatal(err)
		}
	}
	if job := wait(t, h, id); job.State != jobhost.Succeeded {
		t.Fatalf("the job is %v: %+v", job.State, job.Failures)
	}
	for task := range 2 {
		var s jobhost.TaskState
		result, err := h.Result(t.Context(), id, task)
		if err != nil || json.Unmarshal(result.Data, &s) != nil || s.Status != 5 || s.TaskID != 0 {
			t.Errorf("task %d saw %s, %v", task, result.Data, err)
		}
	}
}

// TestGuestWatches: a worker with the grant follows another worker's job to its end.
func TestGuestWatches(t *testing.T) {
	t.Parallel()
	h, said := stateHost(t)
	later := submitTo(t, h, jobhost.Spec{Worker: "test", Delay: time.Hour, Tasks: 2})
	watcher := submitTo(t, h, jobhost.Spec{Worker: "friend", Entry: "watch", Payload: []byte("1\n" + later + "/ingest")})
	if got := <-said; !strings.Contains(got, `"sentinel":true`) || strings.Contains(got, "cursor") {
		t.Errorf("it begins with %s", got)
	}
	for task, status := range []int32{9, 1, 7, jobhost.StatusFinished} {
		s := jobhost.TaskState{JobID: later, TaskID: min(task, 1), Tag: "ingest", Status: status}
		if _, err := h.SetState(t.Context(), "", s, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := resultOf(t, h, watcher); got != "0" {
		t.Errorf("the watch was answered %s", got)
	}
	for version, status := range []int32{1, 7, jobhost.StatusFinished} {
		var e jobhost.StateEvent
		if err := json.Unmarshal([]byte(<-said), &e); err != nil || e.Replay || e.State.Status != status || e.State.Version != int64(version+1) || e.State.TaskID != 1 {
			t.Errorf("%+v, %v", e, err)
		}
	}
}

// TestOthersMayNotWatch: without the grant a job that is there, one that isn't and
// one of the same worker are the same.
func TestOthersMayNotWatch(t *testing.T) {
	t.Parallel()
	h, _ := stateHost(t)
	of := func(worker string) string {
		id := submitTo(t, h, jobhost.Spec{Worker: worker, Payload: []byte("a\n1\n\n")})
		wait(t, h, id)
		return id
	}
	test, friend := of("test"), of("friend")
	for _, tt := range []struct{ name, worker, job, want string }{
		{"with the grant", "friend", test, `{"job":"` + test},
		{"of its own worker", "friend", friend, "-2"},
		{"of a job that isn't there", "friend", "nothing", "-2"},
		{"without the grant", "other", test, "-2"},
		{"without the grant, not there", "other", "nothing", "-2"},
	} {
		for _, entry := range []string{"get", "watch"} {
			want := tt.want
			payload := "0\n" + tt.job + "/a"
			if entry == "watch" && want != "-2" {
				entry, payload, want = "watches", "1\n"+payload, "1"
			}
			if got := resultOf(t, h, submitTo(t, h, jobhost.Spec{Worker: tt.worker, Entry: entry, Payload: []byte(payload)})); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s is answered with %s, want %s", tt.name, entry, got, want)
			}
		}
	}
}

func TestNoStatesKept(t *testing.T) {
	t.Parallel()
	h, _ := stateHost(t, func(c *host.Config) { c.States = nil })
	for entry, payload := range map[string]string{"set": "a\n1\n\n", "get": "0\na", "watch": "0\na"} {
		if got := resultOf(t, h, submitTo(t, h, jobhost.Spec{Worker: "test", Entry: entry, Payload: []byte(payload)})); got != "-6" {
			t.Errorf("%s is answered with %s", entry, got)
		}
	}
	if got := resultOf(t, h, submitTo(t, h, jobhost.Spec{Worker: "test", Entry: "receive"})); got != "-2" {
		t.Errorf("a job may receive: %s", got)
	}
}

// watchRuns collects what a watcher is told of a task under "_run", until it has
// ended for good. It calls began once it watches.
func watchRuns(t *testing.T, h *hosttest.Host, id string, began func()) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var list []string
	version := int64(0)
	for e, err := range h.WatchStates(ctx, jobhost.StateQuery{Job: id, Tag: jobhost.TagRun}) {
		if err != nil {
			t.Fatalf("after %q: %v", list, err)
		}
		if e.Sentinel {
			began()
			continue
		}
		if e.State.Version <= version {
			t.Errorf("version %d comes after %d", e.State.Version, version)
		}
		version = e.State.Version
		list = append(list, fmt.Sprint(e.State.Status, " ", e.State.Message))
		if e.State.Status == jobhost.StatusFinished || e.State.Status == jobhost.StatusError {
			return list
		}
	}
	return list
}

// TestRunStates: the host reports how the attempts of a task go, in order.
func TestRunStates(t *testing.T) {
	t.Parallel()
	const begun, again, finished = "1 🟢 Started", "1 🟢 Started, attempt 2", "2147483647 ⚫ Finished"
	const failed, dead = "0 🟡 attempt 1 failed: failed: on purpose", "-1 🔴 failed: on purpose"
	for _, tt := range []struct {
		name string
		spec jobhost.Spec
		want []string
	}{
		{"success", jobhost.Spec{Payload: []byte("a\n1\n\n")}, []string{begun, finished}},
		{"retry", jobhost.Spec{Entry: "set_fail", Payload: []byte("a\n1\n\n"), MaxAttempts: 2}, []string{begun, failed, again, dead}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, _ := stateHost(t)
			if _, err := h.PauseWorker(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			tt.spec.Worker = "test"
			id := submitTo(t, h, tt.spec)
			live := watchRuns(t, h, id, func() {
				if _, err := h.ResumeWorker(t.Context(), "test"); err != nil {
					t.Error(err)
				}
			})
			if !slices.Equal(live, tt.want) {
				t.Errorf("told %q, want %q", live, tt.want)
			}
			// Who comes late is told the last.
			if late := watchRuns(t, h, id, func() {}); !slices.Equal(late, tt.want[len(tt.want)-1:]) {
				t.Errorf("later %q", late)
			}
		})
	}
}

// TestRunStateOfACancel: a cancel is an error, of a job that runs as of one that waits.
func TestRunStateOfACancel(t *testing.T) {
	t.Parallel()
	h, said := stateHost(t)
	running := submitTo(t, h, jobhost.Spec{Worker: "test", Entry: "watch", Payload: []byte("0\nnever")})
	<-said // the sentinel
	waiting := submitTo(t, h, jobhost.Spec{Worker: "test", Delay: time.Hour})
	for _, id := range []string{running, waiting} {
		if _, err := h.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		wait(t, h, id)
	}
	for _, id := range []string{running, waiting} {
		if got := watchRuns(t, h, id, func() {}); !slices.Equal(got, []string{"-1 🔴 cancelled"}) {
			t.Errorf("%q", got)
		}
	}
}

// TestGuestSeesItsRun: a guest reads "_run" of its own job, and can't write it.
func TestGuestSeesItsRun(t *testing.T) {
	t.Parallel()
	h, _ := stateHost(t)
	var s jobhost.TaskState
	got := resultOf(t, h, submitTo(t, h, jobhost.Spec{Worker: "test", Entry: "get", Payload: []byte("0\n_run")}))
	if err := json.Unmarshal([]byte(got), &s); err != nil || s.Status != jobhost.StatusStarted || s.Version == 0 {
		t.Errorf("%s, %v", got, err)
	}
	if got := resultOf(t, h, submitTo(t, h, jobhost.Spec{Worker: "test", Payload: []byte("_run\n1\n\n")})); got != "-2" {
		t.Errorf("it was answered %s", got)
	}
}

// TestWatchEndsWithTheStates: deleting them ends who watches them.
func TestWatchEndsWithTheStates(t *testing.T) {
	t.Parallel()
	var store state.Store
	h, said := stateHost(t, func(c *host.Config) { store = c.States })
	watcher := submitTo(t, h, jobhost.Spec{Worker: "test", Entry: "watch", Payload: []byte("0\na")})
	<-said // the sentinel
	if err := store.Delete(t.Context(), state.Job{ID: watcher}); err != nil {
		t.Fatal(err)
	}
	if got := resultOf(t, h, watcher); got != "-7" {
		t.Errorf("the watch was answered %s", got)
	}
}
