package state_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// manage returns the manager of a task on a board that others use too.
func (f fixture) manage(task int) *state.Manager {
	f.t.Helper()
	m, err := state.NewManager(f.Board, task)
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

// openManager returns the manager of a task with a board of its own.
func openManager(t testing.TB, store state.Store, task, tasks int) *state.Manager {
	t.Helper()
	m, err := state.Open(t.Context(), store, job, task, tasks, state.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestManagerSets(t *testing.T) {
	t.Parallel()
	f := setup(t, 3)
	withJob := func(s state.State, id string) state.State { s.JobID = id; return s }
	for _, c := range []struct {
		name string
		task int
		set  state.State
		want error
	}{
		{"its own task", 1, of(1, "a", 5), nil},
		{"its own job by name", 1, withJob(of(1, "a", 5), job.ID), nil},
		{"a tag of the host", 1, of(1, jobhost.TagRun, 5), nil},
		{"another task", 1, of(0, "a", 5), state.ErrTaskMismatch},
		{"a task that isn't there", 1, of(7, "a", 5), state.ErrTaskMismatch},
		{"another job", 1, withJob(of(1, "a", 5), "other"), state.ErrJobMismatch},
		{"a monitor", state.Monitor, of(0, "a", 5), state.ErrReadOnly},
		{"a monitor's own index", state.Monitor, of(state.Monitor, "a", 5), state.ErrReadOnly},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			wantErr(t, "set", f.manage(c.task).SetState(t.Context(), c.set), c.want)
		})
	}
	wantCode(t, "not a tag", f.manage(1).SetState(t.Context(), of(1, "no tag", 1)), jobhost.CodeInvalid)
	for _, task := range []int{3, -2} {
		_, err := state.NewManager(f.Board, task)
		wantCode(t, "a manager of no task", err, jobhost.CodeInvalid)
		_, err = state.Open(t.Context(), f.store, job, task, 3, state.Observer{})
		wantCode(t, "a manager of no task", err, jobhost.CodeInvalid)
	}
}

func TestManagerReads(t *testing.T) {
	t.Parallel()
	f := setup(t, 2)
	m, monitor := f.manage(1), f.manage(state.Monitor)
	if m.TaskID() != 1 || m.Tasks() != 2 || monitor.TaskID() != state.Monitor {
		t.Errorf("task %d of %d, monitor %d", m.TaskID(), m.Tasks(), monitor.TaskID())
	}
	sub, err := monitor.Subscribe(t.Context(), state.WithTag("a"))
	if err != nil {
		t.Fatal(err)
	}
	f.set(of(0, "a", -1))
	if err := m.SetStarted(t.Context(), of(1, "a", 0)); err != nil {
		t.Fatal(err)
	}
	wantTold(t, sub, "sentinel", "0/a v1 =-1", "1/a v1 =1")
	for _, reader := range []*state.Manager{m, monitor} {
		if got, err := reader.GetState(t.Context(), state.WithTaskID(0)); err != nil || got.Status != -1 {
			t.Errorf("got %+v, %v", got, err)
		}
		if states, err := reader.Synchronize(t.Context(), "a", -1); err != nil || len(states) != 2 {
			t.Errorf("got %+v, %v", states, err)
		}
	}
}

// TestMessages has the helpers set what people know a status by.
func TestMessages(t *testing.T) {
	t.Parallel()
	const most = jobhost.MaxStateMessageBytes
	own := state.State{Message: "rows are read"}
	ctx := t.Context()
	for _, c := range []struct {
		name    string
		set     func(m *state.Manager, s state.State) error
		given   state.State
		status  int32
		message string
	}{
		{"started", func(m *state.Manager, s state.State) error { return m.SetStarted(ctx, s) }, state.State{}, state.StatusStarted, "🟢 Started"},
		{"started, own message", func(m *state.Manager, s state.State) error { return m.SetStarted(ctx, s) }, own, state.StatusStarted, own.Message},
		{"finished", func(m *state.Manager, s state.State) error { return m.SetFinished(ctx, s) }, state.State{Status: 3}, state.StatusFinished, "⚫ Finished"},
		{"finished, own message", func(m *state.Manager, s state.State) error { return m.SetFinished(ctx, s) }, own, state.StatusFinished, own.Message},
		{"error", func(m *state.Manager, s state.State) error { return m.SetError(ctx, errors.New("broken"), s) }, own, state.StatusError, "🔴 broken"},
		{"no error", func(m *state.Manager, s state.State) error { return m.SetError(ctx, nil, s) }, own, state.StatusError, "🔴 <nil>"},
		{"warning", func(m *state.Manager, s state.State) error { return m.SetWarning(ctx, "slow", s) }, own, state.StatusWarning, "🟡 slow"},
		{"what is no text", func(m *state.Manager, s state.State) error { return m.SetWarning(ctx, "a\xffb\x00c", s) }, own, state.StatusWarning, "🟡 a\uFFFDb\uFFFDc"},
		{"as long as it may be", func(m *state.Manager, s state.State) error {
			return m.SetWarning(ctx, strings.Repeat("x", most-5), s)
		}, own, state.StatusWarning, "🟡 " + strings.Repeat("x", most-5)},
		{"too long", func(m *state.Manager, s state.State) error { return m.SetWarning(ctx, strings.Repeat("x", most-4), s) }, own, state.StatusWarning, "🟡 " + strings.Repeat("x", most-8) + "…"},
		{"too long, cut in a letter", func(m *state.Manager, s state.State) error {
			return m.SetError(ctx, errors.New("x"+strings.Repeat("🔴", most)), s)
		}, own, state.StatusError, "🔴 x" + strings.Repeat("🔴", (most-9)/4) + "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, 1)
			c.given.Tag, c.given.Payload = "a", []byte(`{"rows":1}`)
			if err := c.set(f.manage(0), c.given); err != nil {
				t.Fatal(err)
			}
			got := f.get(state.WithTag("a"))
			if got.Status != c.status || got.Message != c.message || string(got.Payload) != `{"rows":1}` {
				t.Errorf("got %d, %.60q (%d bytes), %s; want %d, %.60q (%d bytes)", got.Status, got.Message, len(got.Message), got.Payload, c.status, c.message, len(c.message))
			}
			if len(got.Message) > most || !utf8.ValidString(got.Message) {
				t.Errorf("a message of %d bytes", len(got.Message))
			}
		})
	}
}

// TestWholeJob has managers do what concerns the whole job, which only task 0 does.
func TestWholeJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(t *testing.T, m *state.Manager) error
		then jobhost.Code // of opening it again
	}{
		{"mark", func(t *testing.T, m *state.Manager) error { return m.MarkJobDeleted(t.Context()) }, jobhost.CodeConflict},
		{"delete", func(t *testing.T, m *state.Manager) error { return m.DeleteJob(t.Context()) }, jobhost.CodeNotFound},
	} {
		for _, owns := range []bool{false, true} {
			name := c.name + " on a shared board"
			if owns {
				name = c.name + " on a board of its own"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := setup(t, 2)
				f.set(of(0, "a", 1))
				manager := func(task int) *state.Manager {
					if owns {
						return openManager(t, f.store, task, 0)
					}
					return f.manage(task)
				}
				sub := f.subscribe()
				for _, task := range []int{1, state.Monitor} {
					wantErr(t, "elsewhere", c.do(t, manager(task)), nil)
					wantErr(t, "the board", f.Err(), nil)
				}
				wantErr(t, "task 0", c.do(t, manager(0)), nil)
				wantTold(t, sub, "was 0/a v1 =1", "sentinel", "end")
				wantErr(t, "end", sub.Err(), state.ErrDeleted)
				_, err := state.NewBoard(t.Context(), f.store, job, 0, state.Observer{})
				wantCode(t, "open it again", err, c.then)
			})
		}
	}
}

// TestManagerCloses ends what waits with a manager, and its board if it opened it.
func TestManagerCloses(t *testing.T) {
	t.Parallel()
	for _, owns := range []bool{false, true} {
		name := "shared board"
		if owns {
			name = "board of its own"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := setup(t, 2)
				m := f.manage(0)
				if owns {
					m = openManager(t, f.store, 0, 2)
				}
				sub, err := m.Subscribe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				neighbour, err := f.manage(0).Subscribe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				direct := f.subscribe()
				w := wait(func() ([]state.State, error) { return m.Synchronize(t.Context(), "a", 5) })
				other := wait(func() ([]state.State, error) { return f.Synchronize(t.Context(), "a", 5) })
				f.set(of(0, "a", 1))
				for range 2 { // again is fine
					wantErr(t, "close", m.Close(), nil)
				}
				synctest.Wait()
				wantTold(t, sub, "sentinel", "0/a v1 =1", "end")
				wantErr(t, "end", sub.Err(), state.ErrClosed)
				if !w.done.Load() || len(w.states) > 0 {
					t.Fatal("it still waits for others")
				}
				wantErr(t, "synchronize", w.err, state.ErrClosed)
				wantClosed(t, m)

				f.set(of(0, "a", 5), of(1, "a", 5))
				synctest.Wait()
				for _, s := range []*state.Subscription{neighbour, direct} {
					wantTold(t, s, "sentinel", "0/a v1 =1", "0/a v2 =5", "1/a v1 =5")
				}
				if !other.done.Load() || other.err != nil {
					t.Fatalf("the other waits: %v", other.err)
				}
			})
		})
	}
}

// wantClosed fails the test unless a manager refuses everything.
func wantClosed(t *testing.T, m *state.Manager) {
	t.Helper()
	_, get := m.GetState(t.Context())
	_, subscribe := m.Subscribe(t.Context())
	_, synchronize := m.Synchronize(t.Context(), "a", 0)
	for what, err := range map[string]error{
		"get": get, "subscribe": subscribe, "synchronize": synchronize,
		"set":     m.SetState(t.Context(), of(0, "a", 1)),
		"started": m.SetStarted(t.Context(), of(0, "a", 1)),
		"mark":    m.MarkJobDeleted(t.Context()),
		"delete":  m.DeleteJob(t.Context()),
	} {
		wantErr(t, what, err, state.ErrClosed)
	}
}

// TestManagerOpens opens boards for managers, which others don't notice.
func TestManagerOpens(t *testing.T) {
	t.Parallel()
	store := newCounting()
	_, err := state.Open(t.Context(), store, job, state.Monitor, 0, state.Observer{})
	wantCode(t, "a monitor of nothing", err, jobhost.CodeNotFound)
	first, second := openManager(t, store, 0, 2), openManager(t, store, 1, 9)
	if second.Tasks() != 2 {
		t.Errorf("the second manager knows %d tasks", second.Tasks())
	}
	if err := first.SetFinished(t.Context(), of(0, "a", 0)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again is fine
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, store, job.Key(), 3, 1)
	}
	_, err = state.Open(t.Context(), store, job, 2, 0, state.Observer{})
	wantCode(t, "a manager of no task", err, jobhost.CodeInvalid)
	wantCounts(t, store, job.Key(), 4, 2)
	if err := second.SetFinished(t.Context(), of(1, "a", 0)); err != nil {
		t.Fatal(err)
	}
	monitor := openManager(t, store, state.Monitor, 0)
	if got, err := monitor.GetState(t.Context()); err != nil || got.Status != state.StatusFinished {
		t.Errorf("got %+v, %v", got, err)
	}
}
