package sqlitestate_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/sqlitedb/harm"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/sqlitestate"
)

// sink is a [state.Feed] that counts.
type sink struct{ got []state.State }

func (s *sink) Put(states ...state.State) { s.got = append(s.got, states...) }
func (s *sink) End(error)                 {}

// A state of which a page is damaged is an error that says which. The states of other
// jobs are as they were.
func TestStatesOfDamagedPages(t *testing.T) {
	t.Parallel()
	for _, h := range harm.Harms() {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			store, err := sqlitestate.Open(sqlitestate.Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			written := map[string]state.State{}
			for _, name := range []string{"a", "b"} {
				src, err := store.Open(t.Context(), state.Job{ID: name}, 1, &sink{})
				if err != nil {
					t.Fatal(err)
				}
				st := state.State{Tag: "x", Status: 1, EventID: "one", SchemaVersion: 1, Message: strings.Repeat(name, 20_000)}
				if written[name], err = src.Set(t.Context(), st); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			h.Do(t, dir, 'a', 'b')
			var found []error
			file := filepath.Join(dir, sqlitedb.FileName)
			if err := sqlitedb.CheckRows(t.Context(), file, sqlitestate.Schemas(), func(err error) { found = append(found, err) }); err != nil {
				t.Error(err)
			}
			if len(found) != 1 || !strings.Contains(found[0].Error(), "state x of task 0 of job a") {
				t.Errorf("a check of all rows found %v", found)
			}
			store = open(t, sqlitestate.Options{Dir: dir})
			feed := &sink{}
			if _, err := store.Open(t.Context(), state.Job{ID: "a"}, 1, feed); jobhost.CodeOf(err) != jobhost.CodeDamaged ||
				!strings.Contains(err.Error(), "state x of task 0 of job a") || len(feed.got) > 0 {
				t.Errorf("got %d states, %v", len(feed.got), err)
			}
			src, err := store.Open(t.Context(), state.Job{ID: "b"}, 1, feed)
			if err != nil || len(feed.got) != 1 || feed.got[0].Message != written["b"].Message {
				t.Errorf("the other one: %d states, %v", len(feed.got), err)
			}
			if again, err := src.Set(t.Context(), written["b"]); err != nil || again.Version != 1 {
				t.Errorf("written a second time: %+v, %v", again, err)
			}
		})
	}
}
