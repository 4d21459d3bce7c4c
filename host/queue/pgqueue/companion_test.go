package pgqueue_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/pgstate"
	"github.com/jobhost/jobhost/state/statetest"
)

// states is the store of states as a companion, which may refuse what it has done.
type states struct {
	*pgstate.Store
	refuses atomic.Bool
}

var errRefused = errors.New("not now")

func (s *states) Removing(tx *pgdb.Tx, ids []string) error {
	if err := s.Store.Removing(tx, ids); err != nil || !s.refuses.Load() {
		return err
	}
	return errRefused
}

// accompanied returns a queue with states in its database.
func accompanied(t *testing.T) (*store, *states) {
	t.Helper()
	s, companion, _ := accompaniedCounted(t)
	return s, companion
}

// accompaniedCounted also returns a proxy that counts the round trips.
func accompaniedCounted(t *testing.T) (*store, *states, *postgres.Proxy) {
	t.Helper()
	companion := &states{}
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	s := openAt(t, server.URLAt(proxy.Port()), server.Schema(t), append(pgqueue.Schemas(), pgstate.Schemas()...),
		func(db *pgdb.DB, term *pgdb.Term, w *pgdb.Writer) []pgqueue.Companion {
			var err error
			if companion.Store, err = pgstate.New(t.Context(), db, term, w); err != nil {
				t.Fatal(err)
			}
			return []pgqueue.Companion{companion}
		})
	return s, companion, proxy
}

// report sets a state of a job, which is followed.
func (s *states) report(t *testing.T, key string) (*statetest.Watcher, state.Source) {
	t.Helper()
	w := statetest.Watch()
	src, err := s.Open(t.Context(), state.ParseKey(key), 1, w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Set(t.Context(), state.State{Tag: "x", Status: 1, SchemaVersion: 1}); err != nil {
		t.Fatal(err)
	}
	return w, src
}

func (s *states) keys(t *testing.T) (keys []string) {
	t.Helper()
	list, err := s.Jobs(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		keys = append(keys, list[i].Key())
	}
	return keys
}

// TestStatesGoWithTheirJob: whatever removes a job takes its states along, those of all its runs and of no other job, nor
// of a fiber of its name, and tells who follows them. If it is undone both stay.
func TestStatesGoWithTheirJob(t *testing.T) {
	t.Parallel()
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, st := accompanied(t)
			finish(t, s, "a", "w")
			finish(t, s, "a-b", "x")
			watchers := map[string]*statetest.Watcher{}
			var ofA state.Source
			for _, key := range []string{"a~1", "a~zz", "a~_fiber", "a-b", "a-b~1", "aa", "b", "a"} {
				watchers[key], ofA = st.report(t, key)
			}
			watchers["a~2"] = statetest.Watch() // of a run without a state yet
			if _, err := st.Open(t.Context(), state.ParseKey("a~2"), 1, watchers["a~2"]); err != nil {
				t.Fatal(err)
			}
			op := remove(t, s)
			st.refuses.Store(true)
			if _, err := commit(s, op); !errors.Is(err, errRefused) {
				t.Fatalf("a companion has refused, and the commit returned %v", err)
			}
			if got, err := ofA.Set(t.Context(), state.State{Tag: "x", Status: 2, SchemaVersion: 1}); err != nil || got.Version != 2 {
				t.Errorf("set for a job that stays: %+v, %v", got, err)
			}
			st.refuses.Store(false)
			must(t, s, op)
			if got := st.keys(t); !slices.Equal(got, []string{"a-b", "a-b~1", "aa", "a~_fiber", "b"}) {
				t.Errorf("there are states of %v", got)
			}
			for key, w := range watchers {
				var want error
				if slices.Contains([]string{"a", "a~1", "a~2", "a~zz"}, key) {
					want = state.ErrDeleted
				}
				if !errors.Is(w.Ended(), want) {
					t.Errorf("%s has ended with %v", key, w.Ended())
				}
				w.Check(t)
			}
			if _, err := ofA.Set(t.Context(), state.State{Tag: "x", SchemaVersion: 1}); !errors.Is(err, state.ErrDeleted) {
				t.Errorf("set for a job that was removed: %v", err)
			}
		})
	}
}

// TestRoundsOfDeathsWithStates: states of jobs that go for newer dead ones are removed in sets, as the jobs are.
func TestRoundsOfDeathsWithStates(t *testing.T) {
	t.Parallel()
	s, st, proxy := accompaniedCounted(t)
	const deaths = 60
	for round, limit := range []int64{1 << 40, most} { // the statements are prepared in the first one
		name := fmt.Sprint("job ", round)
		keys := submitMany(t, s, deaths, name)
		ops := make([]record.Op, deaths)
		for i, key := range keys {
			st.report(t, fmt.Sprintf("%s-%04d", name, i))
			ops[i] = dying(key, "x", 3)
		}
		if trips := proxy.RoundTrips(func() { must(t, s, ops...) }); trips > limit {
			t.Errorf("%d deaths took %d round trips", deaths, trips)
		}
		if got, want := st.keys(t), []string{name + "-0057", name + "-0058", name + "-0059"}; !slices.Equal(got, want) {
			t.Errorf("there are states of %v, want %v", got, want)
		}
	}
}
