package pgdb_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestHeartbeatNoticesLostCommits: a leader without anything to commit notices that the database was replaced by one
// that lacks what was acknowledged.
func TestHeartbeatNoticesLostCommits(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	cfg := config(server.URL(), schema, "a")
	lost := make(chan int64, 2)
	cfg.Observer.Lost = func(n int64) { lost <- n }
	h := lead(t, openWith(t, cfg))
	for range 5 {
		if _, err := h.add("k", 1); err != nil {
			t.Fatal(err)
		}
	}
	server.Exec(t, "DELETE FROM "+schema+".batch WHERE n>3")
	select {
	case <-h.term.Done():
	case <-time.After(time.Minute):
		t.Fatal("the term goes on")
	}
	if err := h.term.Err(); !errors.Is(err, pgdb.ErrTermOver) {
		t.Error(err)
	}
	if n := <-lost; n != 2 {
		t.Errorf("%d commits are reported as lost", n)
	}
	if _, err := h.add("k", 1); !errors.Is(err, pgdb.ErrTermOver) {
		t.Errorf("a commit after it: %v", err)
	}
	if len(lost) > 0 {
		t.Error("the observer was notified twice")
	}
}

// TestLostConnections: who leads is found out, and a term is given up, although all connections are gone since they were
// used last.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	db := open(t, server.URLAt(proxy.Port()), server.Schema(t), "a")
	h := lead(t, db)
	cut := func() {
		t.Helper()
		var all sync.WaitGroup
		for range 8 { // so that the pool has several
			all.Go(func() {
				if _, err := db.Leader(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		proxy.Cut()
	}
	cut()
	if l, err := db.Leader(t.Context()); err != nil || l.Host != "a" {
		t.Errorf("%+v, %v", l, err)
	}
	cut()
	if _, err := db.Hosts(t.Context()); err != nil {
		t.Error(err)
	}
	cut()
	if _, err := db.Beat(t.Context(), pgdb.Host{Name: "a", Key: []byte("key")}); err != nil {
		t.Error(err)
	}
	cut()
	if found, err := db.Drain(t.Context(), "a"); err != nil || !found {
		t.Errorf("%t, %v", found, err)
	}
	cut()
	h.writer.Close()
	if err := h.term.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if l, err := db.Leader(t.Context()); err != nil || !l.Released {
		t.Errorf("%+v, %v", l, err)
	}
}
