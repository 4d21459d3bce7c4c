package state_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// job is the job of tests that need but one.
var job = state.Job{ID: "job"}

// fixture is a board on a store in memory.
type fixture struct {
	*state.Board
	store *statetest.Memory
	t     testing.TB
}

// setup opens a board of a job with so many tasks.
func setup(t testing.TB, tasks int) fixture { return observed(t, tasks, state.Observer{}) }

func observed(t testing.TB, tasks int, observe state.Observer) fixture {
	t.Helper()
	store := statetest.NewMemory()
	return fixture{Board: open(t, store, tasks, observe), store: store, t: t}
}

func open(t testing.TB, store state.Store, tasks int, observe state.Observer) *state.Board {
	t.Helper()
	b, err := state.NewBoard(t.Context(), store, job, tasks, observe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// of makes a state that is to be set.
func of(task int, tag string, status int32) state.State {
	return state.State{TaskID: task, Tag: tag, Status: status}
}

// set sets states that must be taken.
func (f fixture) set(states ...state.State) {
	f.t.Helper()
	for _, s := range states {
		if _, err := f.Set(f.t.Context(), s); err != nil {
			f.t.Fatalf("set %d/%s: %v", s.TaskID, s.Tag, err)
		}
	}
}

// get asks for the state that prevails.
func (f fixture) get(opts ...state.Option) state.State {
	f.t.Helper()
	s, err := f.Get(state.NewQuery(opts...))
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// subscribe watches the board.
func (f fixture) subscribe(opts ...state.Option) *state.Subscription {
	f.t.Helper()
	s, err := f.Subscribe(f.t.Context(), state.NewQuery(opts...), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// told returns the events that can be read at once, each in a few characters,
// and the cursor of the last one.
func told(s *state.Subscription) (events []string, cursor string) {
	for {
		select {
		case e, ok := <-s.Events():
			if !ok {
				return append(events, "end"), cursor
			}
			events = append(events, brief(e))
			if e.Cursor != "" {
				cursor = e.Cursor
			}
		default:
			return events, cursor
		}
	}
}

// brief shows an event as task/tag, version and status.
func brief(e *state.Event) string {
	switch text := fmt.Sprintf("%d/%s v%d =%d", e.State.TaskID, e.State.Tag, e.State.Version, e.State.Status); {
	case e.Sentinel:
		return "sentinel"
	case e.Replay:
		return "was " + text
	default:
		return text
	}
}

// wantTold fails the test unless exactly these events can be read, and returns
// the cursor of the last one.
func wantTold(t testing.TB, s *state.Subscription, want ...string) string {
	t.Helper()
	got, cursor := told(s)
	if !slices.Equal(got, want) {
		t.Fatalf("told:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	return cursor
}

func wantCode(t testing.TB, what string, err error, code jobhost.Code) {
	t.Helper()
	if jobhost.CodeOf(err) != code {
		t.Fatalf("%s: got %v, want the code %q", what, err, code)
	}
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got %v, want: %v", what, err, want)
	}
}

// clock gives times that tests choose.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) set(seconds int) { c.now = time.Unix(int64(seconds), 0) }

func TestJobNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		job  state.Job
		key  string
		ok   bool
	}{
		{"plain", state.Job{ID: "a"}, "a", true},
		{"run", state.Job{ID: "a.b-c_d", Run: "2"}, "a.b-c_d~2", true},
		{"no id", state.Job{}, "", false},
		{"no id but a run", state.Job{Run: "2"}, "~2", false},
		{"mark in the id", state.Job{ID: "a~b"}, "a~b", false},
		{"mark in the run", state.Job{ID: "a", Run: "b~c"}, "a~b~c", false},
		{"slash", state.Job{ID: "a/b"}, "a/b", false},
		{"too long", state.Job{ID: strings.Repeat("a", jobhost.MaxIDBytes+1)}, strings.Repeat("a", jobhost.MaxIDBytes+1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.job.Key(); got != c.key {
				t.Errorf("key %q, want %q", got, c.key)
			}
			if err := c.job.Check(); (err == nil) != c.ok {
				t.Errorf("check: %v", err)
			}
			if got := state.ParseKey(c.key); c.ok && got != c.job {
				t.Errorf("parsed as %+v", got)
			}
			_, err := state.NewBoard(t.Context(), statetest.NewMemory(), c.job, 1, state.Observer{})
			if (err == nil) != c.ok {
				t.Errorf("open: %v", err)
			}
		})
	}
}

func TestNumberOfTasks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		tasks int
		code  jobhost.Code
	}{
		{"one", 1, ""},
		{"most", jobhost.MaxTasks, ""},
		{"none, of a job that isn't there", 0, jobhost.CodeNotFound},
		{"below none", -1, jobhost.CodeInvalid},
		{"too many", jobhost.MaxTasks + 1, jobhost.CodeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := statetest.NewMemory()
			b, err := state.NewBoard(t.Context(), store, job, c.tasks, state.Observer{})
			wantCode(t, "open", err, c.code)
			if err == nil && b.Tasks() != c.tasks {
				t.Errorf("it has %d tasks", b.Tasks())
			}
			if jobs, _ := store.Jobs(t.Context(), "", 10); err != nil && len(jobs) > 0 {
				t.Errorf("it was made all the same: %+v", jobs)
			}
		})
	}
	t.Run("that of the job counts", func(t *testing.T) {
		t.Parallel()
		f := setup(t, 3)
		for _, tasks := range []int{0, 1, 7} {
			if got := open(t, f.store, tasks, state.Observer{}).Tasks(); got != 3 {
				t.Errorf("opened with %d it has %d tasks", tasks, got)
			}
		}
	})
}
