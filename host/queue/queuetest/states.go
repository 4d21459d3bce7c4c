package queuetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/host/queue/record"
)

// StatesOf implements [queue.StateReader].
func (s *Memory) StatesOf(ctx context.Context, id string) (noted, gone bool, err error) {
	err = s.read(ctx, func() error {
		noted, gone = s.model.noted[id], s.model.stateless[id]
		return nil
	})
	return noted, gone, err
}

// StatesGone implements [queue.StateReader].
func (s *Memory) StatesGone(ctx context.Context, after string, limit int) (out []string, err error) {
	err = s.read(ctx, func() error {
		out = slices.DeleteFunc(slices.Sorted(maps.Keys(s.model.stateless)), func(id string) bool { return id <= after })
		out = out[:min(len(out), limit)]
		return nil
	})
	return out, err
}

// changeStates applies what is noted of states elsewhere; ok = the operation is such a one.
func (m *model) changeStates(op record.Op) (ok bool) {
	switch op := op.(type) {
	case *record.NoteStates:
		m.noted[op.ID] = true
	case *record.ForgetStates:
		for _, id := range op.IDs {
			delete(m.stateless, id)
		}
	default:
		return false
	}
	return true
}

func (s store) wantStates(id string, noted, gone bool) {
	s.t.Helper()
	isNoted, isGone, err := s.StatesOf(s.t.Context(), id)
	if err != nil || isNoted != noted || isGone != gone {
		s.t.Errorf("states of %s: noted %v, gone %v, %v; want %v and %v", id, isNoted, isGone, err, noted, gone)
	}
}

func (s store) wantStatesGone(want ...string) {
	s.t.Helper()
	ids, err := s.StatesGone(s.t.Context(), "", 100)
	if err != nil {
		s.t.Fatal(err)
	}
	wantSame(s.t, "jobs whose states are gone", ids, want)
}

// testStates follows ids from their note to the end of their states.
func testStates(t *testing.T, h Harness) {
	s := open(t, h)
	s.must(&record.NoteStates{ID: "a"}) // before there is such a job
	s.must(&record.NoteStates{ID: "a"})
	for _, id := range []string{"a", "b", "c"} {
		s.succeed(s.submit(spec(id, "w")))
	}
	s.must(&record.NoteStates{ID: "b"})
	s.wantStates("a", true, false)
	s.wantStates("c", false, false)
	s.wantStates("none", false, false)
	for _, id := range []string{"a", "b", "c"} {
		if res := s.must(&record.Delete{ID: id}); !res.Gone {
			t.Errorf("what went with %s was not reported", id)
		}
	}
	if h.Reopen != nil {
		s.Store = h.Reopen(t, s.Store)
	}
	s.wantStates("a", false, true)
	s.wantStates("c", false, false)
	s.wantStatesGone("a", "b")
	for _, page := range []struct {
		after string
		limit int
		want  []string
	}{{"", 1, []string{"a"}}, {"a", 10, []string{"b"}}, {"b", 10, nil}, {"", 0, nil}} {
		ids, err := s.StatesGone(t.Context(), page.after, page.limit)
		if err != nil || !slices.Equal(ids, page.want) {
			t.Errorf("a page of %d after %q: %v, %v", page.limit, page.after, ids, err)
		}
	}
	// Another job with the id is not gone, and what went before it is remembered.
	s.submit(spec("a", "w"))
	s.wantStates("a", false, true)
	s.must(&record.NoteStates{ID: "a"})
	s.wantStates("a", true, true)
	s.must(&record.ForgetStates{IDs: []string{"a", "b", "never"}})
	s.wantStates("a", true, false)
	s.wantStatesGone()
}

// testStatesTidied removes jobs in the other ways in which they are removed.
func testStatesTidied(t *testing.T, h Harness) {
	s := open(t, h)
	s.must(&record.NoteStates{ID: "over"})
	op := settlement(s.submit(spec("over", "w")), record.Succeeded)
	op.ExpiresAt = epoch + 100
	s.must(op)
	if res := s.must(&record.Tidy{At: epoch + 50, Limit: 10}); res.Gone {
		t.Error("states are gone before their job")
	}
	if res := s.must(&record.Tidy{At: epoch + 100, Limit: 10}); !res.Gone {
		t.Error("the states that are gone were not reported")
	}
	s.wantStatesGone("over")
	s.must(&record.ForgetStates{IDs: []string{"over"}})
	for i := range 2 {
		id := fmt.Sprint("dead", i)
		s.must(&record.NoteStates{ID: id})
		dead := settlement(s.submit(spec(id, "w")), record.Dead)
		dead.MaxDead = 1
		if res := s.must(dead); res.Gone != (i == 1) {
			t.Errorf("death %d: Gone is %v", i, res.Gone)
		}
	}
	s.wantStatesGone("dead0")
}

// genStates draws what is noted of the states of a few ids.
func genStates(id *rapid.Generator[string]) *rapid.Generator[record.Op] {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) record.Op { return &record.NoteStates{ID: id.Draw(t, "id")} }),
		rapid.Custom(func(t *rapid.T) record.Op { return &record.ForgetStates{IDs: rapid.SliceOfN(id, 0, 3).Draw(t, "ids")} }),
	)
}

// checkStates asks the store and the model of which jobs there are states elsewhere.
func checkStates(t *testing.T, rt *rapid.T, s record.Store, m *model) {
	gone, err := s.StatesGone(t.Context(), "", 1000)
	if err != nil {
		rt.Fatal(err)
	}
	same(rt, "jobs whose states are gone", gone, slices.Sorted(maps.Keys(m.stateless)))
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		noted, gone, err := s.StatesOf(t.Context(), id)
		if err != nil || noted != m.noted[id] || gone != m.stateless[id] {
			rt.Fatalf("states of %s: noted %v, gone %v, %v", id, noted, gone, err)
		}
	}
}

// clearStates forgets all ids. Notes go with jobs, which are made for that.
func clearStates(t *testing.T, rt *rapid.T, s record.Store) {
	var ops []record.Op
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		noted, _, err := s.StatesOf(t.Context(), id)
		if err != nil {
			rt.Fatal(err)
		}
		if noted {
			ops = append(ops, &record.Submit{Job: spec(id, "w")}, &record.Cancel{ID: id}, &record.Delete{ID: id})
		}
		ops = append(ops, &record.ForgetStates{IDs: []string{id}})
	}
	if _, err := commit(s, ops...); err != nil {
		rt.Fatal(err)
	}
}
