package taskstate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/pending"
	"github.com/jobhost/jobhost/host/taskstate"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// jobs are those of a queue.
type jobs map[string]jobhost.Job

func (j jobs) Job(_ context.Context, id string) (jobhost.Job, error) {
	if job, ok := j[id]; ok {
		return job, nil
	}
	return jobhost.Job{}, &jobhost.Error{Code: jobhost.CodeNotFound, Message: "there is no job " + id}
}

// guest returns task 1 of job "j", which has 3 tasks, beside job "k" with 1.
func guest(t *testing.T) (*taskstate.Guest, *taskstate.Keeper, *statetest.Memory) {
	t.Helper()
	store := statetest.NewMemory()
	k := taskstate.New(taskstate.Config{
		Store: store, Logger: slog.New(slog.DiscardHandler),
		Jobs: jobs{"j": {ID: "j", Worker: "w", TaskCount: 3}, "k": {ID: "k", Worker: "v", TaskCount: 1}},
	})
	t.Cleanup(k.Close)
	g := k.Guest(state.Job{ID: "j"}, 1, 3)
	t.Cleanup(g.Close)
	return g, k, store
}

func watch(t *testing.T, g *taskstate.Guest, q hostcall.StateQuery) hostcall.Stream {
	t.Helper()
	s, err := g.Watch(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read returns the interesting parts of the next message.
func read(t *testing.T, s hostcall.Stream) string {
	t.Helper()
	message, ok, err := s.Next()
	if !ok {
		return fmt.Sprint(err)
	}
	var e jobhost.StateEvent
	if err := json.Unmarshal(message, &e); err != nil {
		t.Fatal(err)
	}
	if e.Cursor != "" || e.State.JobID == "" != e.Sentinel {
		t.Errorf("%s", message)
	}
	if e.Sentinel {
		return "sentinel"
	}
	text := fmt.Sprintf("%d %s %d", e.State.TaskID, e.State.Tag, e.State.Status)
	if e.Replay {
		text += " replay"
	}
	return text
}

func TestGuestSetsItsOwn(t *testing.T) {
	t.Parallel()
	g, _, _ := guest(t)
	if err := g.Set(t.Context(), jobhost.TaskState{TaskID: 1, Tag: "a", Status: 4}); err != nil {
		t.Fatal(err)
	}
	if err := g.Set(t.Context(), jobhost.TaskState{TaskID: 0, Tag: "a"}); !errors.Is(err, state.ErrTaskMismatch) {
		t.Errorf("another task's: %v", err)
	}
	if err := g.Set(t.Context(), jobhost.TaskState{JobID: "k", TaskID: 1, Tag: "a"}); !errors.Is(err, state.ErrJobMismatch) {
		t.Errorf("another job's: %v", err)
	}
	for q, want := range map[hostcall.StateQuery]int32{
		{Task: 1, Tag: "a"}: 4, {Task: 0, Tag: "a"}: 0, {Task: hostcall.AllTasks, Tag: "a"}: 0, {Task: 1}: 4, {Job: "k", Task: 0, Tag: "a"}: 0,
	} {
		if s, err := g.State(t.Context(), q); err != nil || s.Status != want {
			t.Errorf("%+v: %+v, %v", q, s, err)
		}
	}
	if _, err := g.State(t.Context(), hostcall.StateQuery{Task: 3}); jobhost.CodeOf(err) != jobhost.CodeInvalid {
		t.Errorf("a task that isn't there: %v", err)
	}
}

func TestGuestWatch(t *testing.T) {
	t.Parallel()
	g, k, store := guest(t)
	set := func(s jobhost.TaskState) {
		t.Helper()
		if _, err := k.SetState(t.Context(), "", s, 0); err != nil {
			t.Fatal(err)
		}
	}
	set(jobhost.TaskState{JobID: "j", TaskID: 2, Tag: "a", Status: 1})
	all, one := watch(t, g, hostcall.StateQuery{Task: hostcall.AllTasks}), watch(t, g, hostcall.StateQuery{Task: 0, Tag: "a"})
	set(jobhost.TaskState{JobID: "j", TaskID: 2, Tag: "b", Status: 2})
	set(jobhost.TaskState{JobID: "j", TaskID: 0, Tag: "a", Status: 3})
	k.Published(&jobhost.Event{Job: "j", Task: 2, Kind: jobhost.EventStarted, Course: 1, Attempt: 1, Time: time.Now()})
	for _, tt := range []struct {
		stream hostcall.Stream
		want   []string
	}{
		{all, []string{"2 a 1 replay", "sentinel", "2 b 2", "0 a 3", "2 _run 1", "<nil>"}},
		{one, []string{"sentinel", "0 a 3", "<nil>"}},
	} {
		for i, want := range tt.want {
			if got := read(t, tt.stream); got != want {
				t.Errorf("event %d: %s, want %s", i, got, want)
			}
		}
	}
	one.Drop()
	if err := store.Delete(t.Context(), state.Job{ID: "j"}); err != nil {
		t.Fatal(err)
	}
	if i := pending.Wait(t.Context(), []hostcall.Pending{all}); i != 0 {
		t.Error("the end is nothing to wait for")
	}
	if _, ok, err := all.Next(); ok || !errors.Is(err, state.ErrDeleted) {
		t.Errorf("the watch ended with %v", err)
	}
}

// TestGuestIsTooSlow: a guest that doesn't read in time gets an error at the end.
func TestGuestIsTooSlow(t *testing.T) {
	t.Parallel()
	g, _, _ := guest(t)
	s := watch(t, g, hostcall.StateQuery{Task: 1})
	for n := range state.Buffer + 2 { // the sentinel is read late too
		if err := g.Set(t.Context(), jobhost.TaskState{TaskID: 1, Tag: "a", Status: int32(n + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	for {
		_, ok, err := s.Next()
		if !ok {
			if !errors.Is(err, state.ErrSlow) || told < state.Buffer {
				t.Errorf("%v after %d events", err, told)
			}
			return
		}
		told++
	}
}

// TestGuestWatchesMuch: watches begin with copies of what there was, which must not
// pile up while the states change.
func TestGuestWatchesMuch(t *testing.T) {
	t.Parallel()
	g, _, _ := guest(t)
	large := json.RawMessage(`{"text":"` + strings.Repeat("x", 60<<10) + `"}`)
	const tags = 300 // 18 MiB
	var watches []hostcall.Stream
	for {
		for tag := range tags {
			if err := g.Set(t.Context(), jobhost.TaskState{TaskID: 1, Tag: fmt.Sprint("tag-", tag), Payload: large}); err != nil {
				t.Fatal(err)
			}
		}
		s, err := g.Watch(t.Context(), hostcall.StateQuery{Task: 1})
		if err != nil {
			if jobhost.CodeOf(err) != jobhost.CodeExhausted || len(watches) != 3 {
				t.Fatalf("watch %d: %v", len(watches), err)
			}
			break
		}
		if watches = append(watches, s); len(watches) > 3 {
			t.Fatal("there is no end of it")
		}
	}
	watches[0].Drop()
	watch(t, g, hostcall.StateQuery{Task: 1})
}

// TestFiberOutlivesItsStates: a fiber's states don't expire while it runs, and if they are
// removed the fiber starts over.
func TestFiberOutlivesItsStates(t *testing.T) {
	t.Parallel()
	_, k, store := guest(t)
	fiber := state.Job{ID: "f", Run: "_fiber"}
	g := k.Guest(fiber, 0, 1)
	defer g.Close()
	set := func(version int64) {
		t.Helper()
		if err := g.Set(t.Context(), jobhost.TaskState{Tag: "a"}); err != nil {
			t.Fatal(err)
		}
		if s, err := g.State(t.Context(), hostcall.StateQuery{Task: 0, Tag: "a"}); err != nil || s.Version != version {
			t.Fatalf("version %d, %v, want %d", s.Version, err, version)
		}
	}
	set(1)
	store.Now = func() time.Time { return time.Now().Add(-100 * 24 * time.Hour) }
	set(2)
	store.Now = time.Now
	old := jobhost.StateCleanup{TombstoneAge: jobhost.Duration(time.Hour), DeleteAge: jobhost.Duration(2 * time.Hour)}
	if done, err := k.CleanStates(t.Context(), old); err != nil || done.Deleted+done.Tombstoned != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	set(3)
	if err := k.DeleteStates(t.Context(), "f", "_fiber"); err != nil {
		t.Fatal(err)
	}
	set(1)
	g.Close()
	if err := k.DeleteStates(t.Context(), "f", "_fiber"); err != nil {
		t.Fatal(err)
	}
}

// TestGuestCloses: an attempt that ends leaves its watches ended, and the board to others.
func TestGuestCloses(t *testing.T) {
	t.Parallel()
	g, k, _ := guest(t)
	s := watch(t, g, hostcall.StateQuery{Task: hostcall.AllTasks})
	s.Drop()
	g.Close()
	g.Close()
	if got := read(t, s); got != "sentinel" {
		t.Errorf("%s", got)
	}
	if _, ok, err := s.Next(); ok || !errors.Is(err, state.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := k.States(t.Context(), jobhost.StateQuery{Job: "j"}); err != nil {
		t.Error(err)
	}
}
