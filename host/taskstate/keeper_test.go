package taskstate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/state"
)

// TestTasksOfQueue: the queue determines how many tasks its job has, whatever writers say.
func TestTasksOfQueue(t *testing.T) {
	t.Parallel()
	s := newSetup(t, job("a", 3))
	s.set("a", 2, "x", 5, 99)
	if r := s.report(jobhost.StateQuery{Job: "a"}); r.Tasks != 3 {
		t.Errorf("the job has %d tasks", r.Tasks)
	}
	_, err := s.keeper.SetState(s.ctx, "", state.State{JobID: "a", TaskID: 3, Tag: "x"}, 0)
	s.wantCode(err, jobhost.CodeInvalid)
}

// TestReportedBeforehand: a state was reported for an id before the queue had a job with it.
// The job has the queue's number of tasks, shows its own state, and keeps what was reported.
func TestReportedBeforehand(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	s.set("a", 2, "x", 7, 3)
	s.queue.jobs["a"] = job("a", 5)
	e := jobhost.Event{Kind: jobhost.EventSubmitted, Job: "a"}
	s.keeper.Published(&e)
	s.set("a", 4, "x", 1, 0)
	started := jobhost.Event{Kind: jobhost.EventStarted, Job: "a", Task: 3, Attempt: 1, Course: 1, Time: epoch}
	s.keeper.Published(&started)
	r := s.report(jobhost.StateQuery{Job: "a"})
	var got []string
	for _, st := range r.States {
		got = append(got, fmt.Sprintf("%d %s %d", st.TaskID, st.Tag, st.Status))
	}
	if diff := cmp.Diff([]string{"2 x 7", "3 _run 1", "4 x 1"}, got); diff != "" || r.Tasks != 5 {
		t.Errorf("%d tasks\n%s", r.Tasks, diff)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newSetup(t, job("queued", 1))
	s.set("external", 0, "x", 1, 2)
	set := func(st state.State, tasks int) error {
		_, err := s.keeper.SetState(s.ctx, "", st, tasks)
		return err
	}
	setRun := func(run string) error {
		_, err := s.keeper.SetState(s.ctx, run, state.State{JobID: "queued", Tag: "x"}, 1)
		return err
	}
	get := func(q jobhost.StateQuery) error {
		_, err := s.keeper.States(s.ctx, q)
		return err
	}
	nine := 9
	for _, tt := range []struct {
		name string
		err  error
		code jobhost.Code
	}{
		{"a tag of the host", set(state.State{JobID: "queued", Tag: "_run"}, 0), jobhost.CodeDenied},
		{"an unknown job", set(state.State{JobID: "unknown", Tag: "x"}, 0), jobhost.CodeNotFound},
		{"a run of the host", setRun("_fiber"), jobhost.CodeDenied},
		{"a run that is none", setRun("-"), jobhost.CodeInvalid},
		{"delete a run of the host that isn't there", s.keeper.DeleteStates(s.ctx, "queued", "_fiber"), jobhost.CodeNotFound},
		{"no such task", set(state.State{JobID: "external", TaskID: 2, Tag: "x"}, 0), jobhost.CodeInvalid},
		{"too many tasks", set(state.State{JobID: "new", Tag: "x"}, jobhost.MaxTasks+1), jobhost.CodeInvalid},
		{"no job", set(state.State{Tag: "x"}, 1), jobhost.CodeInvalid},
		{"no tag", set(state.State{JobID: "queued"}, 0), jobhost.CodeInvalid},
		{"a payload that is no object", set(state.State{JobID: "queued", Tag: "x", Payload: []byte(`[1]`)}, 0), jobhost.CodeInvalid},
		{"states of an unknown job", get(jobhost.StateQuery{Job: "unknown"}), jobhost.CodeNotFound},
		{"states of no such task", get(jobhost.StateQuery{Job: "queued", Task: &nine}), jobhost.CodeInvalid},
		{"a run that isn't there", get(jobhost.StateQuery{Job: "queued", Run: "2"}), jobhost.CodeNotFound},
		{"a job that is none", get(jobhost.StateQuery{Job: "a~b"}), jobhost.CodeInvalid},
		{"delete what the queue knows", s.keeper.DeleteStates(s.ctx, "queued", ""), jobhost.CodeConflict},
		{"delete what nobody knows", s.keeper.DeleteStates(s.ctx, "unknown", ""), jobhost.CodeNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if jobhost.CodeOf(tt.err) != tt.code {
				t.Errorf("the error is %v, want code %s", tt.err, tt.code)
			}
		})
	}
}

func TestListJobs(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	for i := range 7 {
		s.set(fmt.Sprintf("job-%d", i), 0, "x", 1, 1)
	}
	if err := s.store.Mark(s.ctx, state.Job{ID: "job-3"}); err != nil {
		t.Fatal(err)
	}
	list := func(deleted bool, limit int) (ids []string, pages int) {
		filter := jobhost.StateJobFilter{Deleted: deleted, Limit: limit}
		for {
			page, err := s.keeper.StateJobs(s.ctx, filter)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for _, j := range page.Jobs {
				ids = append(ids, j.Job)
			}
			if filter.Cursor = page.Next; page.Next == "" {
				return ids, pages
			}
		}
	}
	if ids, pages := list(false, 2); len(ids) != 6 || pages != 3 {
		t.Errorf("%d pages of %v", pages, ids)
	}
	if ids, pages := list(true, 7); len(ids) != 7 || pages != 1 || ids[3] != "job-3" {
		t.Errorf("%d pages of %v", pages, ids)
	}
}

// TestDeleteEndsWatchers: watchers of a job get an error when its states are deleted.
func TestDeleteEndsWatchers(t *testing.T) {
	t.Parallel()
	s := newSetup(t)
	s.set("a", 0, "x", 1, 1)
	w := s.watch(jobhost.StateQuery{Job: "a"})
	for range 2 { // the state and the sentinel
		if _, err, _ := w.next(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.keeper.DeleteStates(s.ctx, "a", ""); err != nil {
		t.Fatal(err)
	}
	if _, err, _ := w.next(); !errors.Is(err, state.ErrDeleted) {
		t.Errorf("the watch ended with %v", err)
	}
	s.set("a", 0, "x", 2, 1)
	if got := s.report(jobhost.StateQuery{Job: "a"}).State; got.Version != 1 || got.Status != 2 {
		t.Errorf("after the deletion there is %+v", got)
	}
}

// TestCleanKeepsQueued: states of jobs in the queue are kept, whatever their age.
func TestCleanKeepsQueued(t *testing.T) {
	t.Parallel()
	s := newSetup(t, job("queued", 1))
	long := time.Now().Add(-100 * 24 * time.Hour)
	s.store.Now = func() time.Time { return long }
	s.set("queued", 0, "x", 1, 1)
	s.set("external", 0, "x", 1, 1)
	clean := jobhost.StateCleanup{TombstoneAge: jobhost.Duration(30 * 24 * time.Hour), DeleteAge: jobhost.Duration(90 * 24 * time.Hour), DryRun: true}
	for _, dry := range []bool{true, false} {
		clean.DryRun = dry
		done, err := s.keeper.CleanStates(s.ctx, clean)
		if err != nil || done.Deleted != 1 || done.Tombstoned != 0 || done.DryRun != dry {
			t.Errorf("clean: %+v, %v", done, err)
		}
	}
	if page, err := s.keeper.StateJobs(s.ctx, jobhost.StateJobFilter{}); err != nil || len(page.Jobs) != 1 || page.Jobs[0].Job != "queued" {
		t.Errorf("left are %+v, %v", page.Jobs, err)
	}
}

// TestGuest: a task sets its own states, sees those of its job and of others, and
// is woken by changes.
func TestGuest(t *testing.T) {
	t.Parallel()
	s := newSetup(t, job("a", 2), job("b", 1))
	guest := s.keeper.Guest(state.Job{ID: "a"}, 1, 2)
	defer guest.Close()
	if err := guest.Set(s.ctx, state.State{TaskID: 1, Tag: "x", Status: 7}); err != nil {
		t.Fatal(err)
	}
	s.wantCode(guest.Set(s.ctx, state.State{TaskID: 0, Tag: "x"}), jobhost.CodeDenied)
	all := hostcall.StateQuery{Task: hostcall.AllTasks, Tag: "x"}
	if got, err := guest.State(s.ctx, all); err != nil || got.TaskID != 0 || got.Status != state.StatusNotStarted {
		t.Errorf("of all tasks %+v prevails, %v", got, err)
	}
	stream, err := guest.Watch(s.ctx, hostcall.StateQuery{Job: "b", Task: hostcall.AllTasks})
	if err != nil {
		t.Fatal(err)
	}
	if message, ok, err := stream.Next(); !ok || err != nil || string(message) != `{"replay":true,"sentinel":true}` {
		t.Errorf("the first message is %s, %v, %v", message, ok, err)
	}
	if _, ok, err := stream.Next(); ok || err != nil {
		t.Errorf("there is another message: %v, %v", ok, err)
	}
	s.set("b", 0, "y", 3, 0)
	if message, ok, err := stream.Next(); !ok || err != nil || len(message) == 0 {
		t.Errorf("the change is %s, %v, %v", message, ok, err)
	}
	stream.Drop()
	if _, _, err := stream.Next(); !errors.Is(err, state.ErrClosed) {
		t.Errorf("after the drop there is %v", err)
	}
}
