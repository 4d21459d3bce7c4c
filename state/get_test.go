package state_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// TestGet asks for a state in the four ways, about boards of three tasks.
func TestGet(t *testing.T) {
	t.Parallel()
	const finished = math.MaxInt32
	task, tag := state.WithTaskID, state.WithTag
	for _, c := range []struct {
		name string
		set  []state.State
		opts []state.Option
		want string
	}{
		{"exact, missing", nil, []state.Option{task(1), tag("a")}, "1/a v0 =0"},
		{"exact", []state.State{of(1, "a", 5)}, []state.Option{task(1), tag("a")}, "1/a v1 =5"},
		{"exact, of another task", []state.State{of(1, "a", 5)}, []state.Option{task(2), tag("a")}, "2/a v0 =0"},
		{"exact, of another tag", []state.State{of(1, "a", 5)}, []state.Option{task(1), tag("b")}, "1/b v0 =0"},
		{"exact, changed", []state.State{of(1, "a", 5), of(1, "a", 3)}, []state.Option{task(1), tag("a")}, "1/a v2 =3"},

		{"tag, missing", nil, []state.Option{tag("a")}, "0/a v0 =0"},
		{"tag, first task is missing", []state.State{of(1, "a", 5), of(2, "a", 6)}, []state.Option{tag("a")}, "0/a v0 =0"},
		{"tag, second task is missing", []state.State{of(0, "a", 5), of(2, "a", 6)}, []state.Option{tag("a")}, "1/a v0 =0"},
		{"tag, last task is missing", []state.State{of(0, "a", 5), of(1, "a", 6)}, []state.Option{tag("a")}, "2/a v0 =0"},
		{"tag, reported under others only", []state.State{of(0, "a", 5), of(1, "b", 5), of(2, "a", 5)}, []state.Option{tag("a")}, "1/a v0 =0"},
		{"tag, all there", []state.State{of(0, "a", 5), of(1, "a", 4), of(2, "a", 6)}, []state.Option{tag("a")}, "1/a v1 =4"},
		{"tag, tie", []state.State{of(2, "a", 4), of(1, "a", 4), of(0, "a", 5)}, []state.Option{tag("a")}, "1/a v1 =4"},
		{"tag, error below missing", []state.State{of(2, "a", -1)}, []state.Option{tag("a")}, "2/a v1 =-1"},
		{"tag, warning below error", []state.State{of(0, "a", -1), of(2, "a", -2)}, []state.Option{tag("a")}, "2/a v1 =-2"},
		{"tag, lower errors", []state.State{of(0, "a", -2), of(2, "a", math.MinInt32)}, []state.Option{tag("a")}, "2/a v1 =-2147483648"},
		{"tag, reported as not started before missing", []state.State{of(0, "a", 0)}, []state.Option{tag("a")}, "0/a v1 =0"},
		{"tag, missing before reported as not started", []state.State{of(1, "a", 0)}, []state.Option{tag("a")}, "0/a v0 =0"},
		{"tag, all finished", []state.State{of(0, "a", finished), of(1, "a", finished), of(2, "a", finished)}, []state.Option{tag("a")}, "0/a v1 =2147483647"},
		{"tag, others don't count", []state.State{of(0, "a", 2), of(1, "a", 2), of(2, "a", 2), of(0, "b", -1)}, []state.Option{tag("a")}, "0/a v1 =2"},
		{"tag, risen", []state.State{of(0, "a", 1), of(1, "a", 2), of(2, "a", 3), of(0, "a", 9)}, []state.Option{tag("a")}, "1/a v1 =2"},
		{"tag, fallen", []state.State{of(0, "a", 1), of(1, "a", 2), of(2, "a", 3), of(2, "a", -1)}, []state.Option{tag("a")}, "2/a v2 =-1"},

		{"task, missing", []state.State{of(0, "a", 1)}, []state.Option{task(2)}, "2/ v0 =0"},
		{"task", []state.State{of(2, "a", 7), of(2, "b", 5), of(2, "c", 6)}, []state.Option{task(2)}, "2/b v1 =5"},
		{"task, tie", []state.State{of(2, "c", 5), of(2, "b", 5), of(2, "d", 5)}, []state.Option{task(2)}, "2/b v1 =5"},
		{"task, others don't count", []state.State{of(2, "a", 7), of(1, "a", -1)}, []state.Option{task(2)}, "2/a v1 =7"},
		{"task, warning below error", []state.State{of(2, "a", -1), of(2, "b", -2)}, []state.Option{task(2)}, "2/b v1 =-2"},

		{"job, nothing there", nil, nil, "0/ v0 =0"},
		{"job, a task is missing", []state.State{of(0, "a", 5), of(2, "b", 5)}, nil, "1/ v0 =0"},
		{"job, each has reported something", []state.State{of(0, "a", 5), of(1, "b", 4), of(2, "c", 6)}, nil, "1/b v1 =4"},
		{"job, error below missing", []state.State{of(2, "c", -1)}, nil, "2/c v1 =-1"},
		{"job, tie of tasks", []state.State{of(2, "a", 3), of(1, "b", 3), of(0, "c", 4)}, nil, "1/b v1 =3"},
		{"job, tie of tags", []state.State{of(0, "b", 3), of(0, "a", 3), of(1, "a", 3), of(2, "a", 3)}, nil, "0/a v1 =3"},
		{"job, reported as not started before missing", []state.State{of(0, "z", 0)}, nil, "0/z v1 =0"},
		{"job, missing before reported as not started", []state.State{of(1, "a", 0)}, nil, "0/ v0 =0"},
		{"empty tag is none", []state.State{of(0, "a", 5), of(1, "b", 4), of(2, "c", 6)}, []state.Option{tag("")}, "1/b v1 =4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, 3)
			f.set(c.set...)
			got := f.get(c.opts...)
			if text := brief(&state.Event{State: got}); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
			if got.JobID != job.ID || got.SchemaVersion != 1 || (got.Version == 0) != got.Timestamp.IsZero() {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestGetRefuses(t *testing.T) {
	t.Parallel()
	f := setup(t, 3)
	for _, opts := range [][]state.Option{
		{state.WithTaskID(3)},
		{state.WithTaskID(-1)},
		{state.WithTaskID(state.Monitor), state.WithTag("a")},
		{state.WithTag("no tag")},
		{state.WithTag("a/b"), state.WithTaskID(1)},
	} {
		q := state.NewQuery(opts...)
		_, err := f.Get(q)
		wantCode(t, "get", err, jobhost.CodeInvalid)
		_, err = f.List(q)
		wantCode(t, "list", err, jobhost.CodeInvalid)
		_, err = f.Subscribe(t.Context(), q, nil)
		wantCode(t, "subscribe", err, jobhost.CodeInvalid)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	f := setup(t, 12)
	f.set(of(10, "a", 1), of(2, "b", 1), of(2, "a", 1), of(0, "b", 1), of(2, "B", 1))
	for _, c := range []struct {
		name string
		opts []state.Option
		want string
	}{
		{"all", nil, "0/b 2/B 2/a 2/b 10/a "},
		{"task", []state.Option{state.WithTaskID(2)}, "2/B 2/a 2/b "},
		{"tag", []state.Option{state.WithTag("b")}, "0/b 2/b "},
		{"one", []state.Option{state.WithTag("b"), state.WithTaskID(2)}, "2/b "},
		{"missing", []state.Option{state.WithTag("b"), state.WithTaskID(3)}, ""},
		{"missing task", []state.Option{state.WithTaskID(3)}, ""},
		{"missing tag", []state.Option{state.WithTag("c")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			list, err := f.List(state.NewQuery(c.opts...))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, s := range list {
				got += fmt.Sprintf("%d/%s ", s.TaskID, s.Tag)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestWaitingIsNoState waits for a tag that nothing is reported under.
func TestWaitingIsNoState(t *testing.T) {
	t.Parallel()
	f := setup(t, 2)
	for _, target := range []int32{0, -1, math.MinInt32} {
		states, err := f.Synchronize(t.Context(), "a", target)
		if err != nil || len(states) != 2 || states[1].TaskID != 1 || states[1].Tag != "a" {
			t.Fatalf("got %+v, %v", states, err)
		}
	}
	if list, err := f.List(state.NewQuery(state.WithTag("a"))); err != nil || len(list) != 0 {
		t.Errorf("list: %+v, %v", list, err)
	}
	if got := f.get(state.WithTag("a")); got.Version != 0 || got.Tag != "a" {
		t.Errorf("get: %+v", got)
	}
	if states, bytes := f.Size(); states != 0 || bytes != 0 {
		t.Errorf("%d states of %d bytes", states, bytes)
	}
}
