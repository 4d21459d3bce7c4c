package pgstate_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

var plain = state.Job{ID: "job-1"}

func set1(t testing.TB, src state.Source, tag string) state.State {
	t.Helper()
	st, err := src.Set(t.Context(), state.State{Tag: tag, Status: 1, SchemaVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestCut cuts all connections after many numbers of bytes that a life of writes and deletions sends or gets: what was
// acknowledged is there, once.
func TestCut(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	s := open(t, server.URLAt(proxy.Port()), server.Schema(t))
	step := int64(211)
	if os.Getenv("JOBHOST_CHAOS") != "" {
		step = 7 // each number would take half an hour
	}
	var acked statetest.Acknowledged
	checks := 0
	for _, way := range []postgres.Direction{postgres.ToServer, postgres.ToClient} {
		for k := rand.Int64N(step); k < 6000; k += step {
			proxy.CutAfter(way, k)
			acked.Work(t, s, 1, uint64(k))
			if checks++; checks%10 == 0 {
				proxy.CutAfter(way, -1)
				acked.Check(t, s)
			}
		}
		proxy.CutAfter(way, -1)
	}
	acked.Check(t, s)
	if s.term.Epoch() < 10 {
		t.Errorf("epoch %d: no outcome was looked up", s.term.Epoch())
	}
	acked.Check(t, s.reopen(t))
}

// TestTakeover lets another host take over amid writes and deletions: what was acknowledged is there, and what the old
// one tries is refused.
func TestTakeover(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	src := follow(t, s, plain, 1, statetest.Watch())
	set1(t, src, "x")
	var acked statetest.Acknowledged
	rounds := 8
	for round := range rounds {
		worked := make(chan struct{})
		go func() {
			defer close(worked)
			acked.Work(t, s, 1000, uint64(round))
		}()
		// The writer is somewhere in the middle when a write of its own queue is done.
		if err := s.change(func(*pgdb.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		next := s.overtaken(t)
		<-worked
		if _, err := src.Set(t.Context(), state.State{Tag: "x", SchemaVersion: 1}); jobhost.CodeOf(err) != jobhost.CodeUnavailable || !errors.Is(err, pgdb.ErrTermOver) {
			t.Errorf("a write after the term: %v", err)
		}
		s = next
		acked.Check(t, s)
		src = follow(t, s, plain, 0, statetest.Watch())
		if got := set1(t, src, "x"); got.Version != int64(round+2) {
			t.Errorf("version %d in term %d", got.Version, round+2)
		}
	}
}

// overtaken returns the store of a host that has taken over without waiting for the lease to end.
func (s *store) overtaken(t *testing.T) *store {
	t.Helper()
	db := connect(t, s.url, s.schema, "b")
	l, err := db.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	term, err := db.TakeOver(t.Context(), l)
	if err != nil || term == nil {
		t.Fatalf("take over: %v, %v", term, err)
	}
	next := lead(t, db, term)
	next.url, next.schema = s.url, s.schema
	return next
}
