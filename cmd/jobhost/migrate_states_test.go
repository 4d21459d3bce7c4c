package main

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/pgstate"
	"github.com/jobhost/jobhost/state/sqlitestate"
	"github.com/jobhost/jobhost/state/statetest"
)

// movableStates are the states of a store on SQLite, or what became of them in PostgreSQL.
type movableStates struct {
	state.Store
	dir    string // of SQLite
	schema string // of PostgreSQL
	once   sync.Once
	end    func() error
}

// Close also ends what the store is made of.
func (s *movableStates) Close() error {
	err := s.Store.Close()
	s.once.Do(func() { err = errors.Join(err, s.end()) })
	return err
}

// statesOnSQLite returns the states of a folder, which are closed with the test.
func statesOnSQLite(t testing.TB, dir string) *movableStates {
	t.Helper()
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Relaxed: true, Schemas: schemas()})
	if err != nil {
		t.Fatal(err)
	}
	states, err := sqlitestate.New(db)
	if err != nil {
		t.Fatal(err)
	}
	s := &movableStates{Store: states, dir: dir, end: db.Close}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// statesOnPostgres returns the states of a new term in a schema, which are closed with the test.
func statesOnPostgres(t testing.TB, url, schema string) *movableStates {
	t.Helper()
	db, term, w, end := openTerm(t, url, schema)
	states, err := pgstate.New(context.Background(), db, term, w)
	if err != nil {
		t.Fatal(err)
	}
	s := &movableStates{Store: states, schema: schema, end: end}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestMovedStates: states are the same when they were moved, with their versions, times and marks, and go on from there.
func TestMovedStates(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	statetest.RunReopen(t, statetest.Harness{
		Open: func(t testing.TB) state.Store { return statesOnSQLite(t, t.TempDir()) },
		Reopen: func(t testing.TB, s state.Store) state.Store {
			t.Helper()
			was := s.(*movableStates)
			if err := was.Close(); err != nil {
				t.Fatal(err)
			}
			if was.schema == "" {
				was.schema = server.Schema(t)
				if _, err := moveRows(t.Context(), t, was.dir, server.URL(), was.schema); err != nil {
					t.Fatal(err)
				}
			}
			return statesOnPostgres(t, server.URL(), was.schema)
		},
	})
}
