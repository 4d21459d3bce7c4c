package pgstate_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/pgstate"
	"github.com/jobhost/jobhost/state/statetest"
)

func TestMain(m *testing.M) { postgres.Main(m) }

// store is a store with what it is made of.
type store struct {
	*pgstate.Store
	url, schema string
	writer      *pgdb.Writer
	term        *pgdb.Term
	once        sync.Once
	end         func()
}

// Close ends the term too.
func (s *store) Close() error {
	err := s.Store.Close()
	s.once.Do(s.end)
	return err
}

// connect opens a database, which the store closes.
func connect(t testing.TB, url, schema, host string) *pgdb.DB {
	t.Helper()
	db, err := pgdb.Open(t.Context(), pgdb.Config{
		URL: url, Schema: schema, Host: host, Address: host + ":7070", Relaxed: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// open returns the store of a new term in a schema, which is closed with the test.
func open(t testing.TB, url, schema string) *store {
	t.Helper()
	db := connect(t, url, schema, "a")
	if err := db.Migrate(t.Context(), pgstate.Schemas()); err != nil {
		t.Fatal(err)
	}
	term, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := lead(t, db, term)
	s.url, s.schema = url, schema
	return s
}

// lead returns the store of a term, which is closed with the test.
func lead(t testing.TB, db *pgdb.DB, term *pgdb.Term) *store {
	t.Helper()
	w, err := term.NewWriter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q, err := pgstate.New(t.Context(), db, term, w)
	if err != nil {
		t.Fatal(err)
	}
	s := &store{Store: q, writer: w, term: term, end: func() {
		w.Close()
		if err := term.Release(context.Background()); err != nil {
			t.Error(err)
		}
		db.Close()
	}}
	t.Cleanup(func() { _ = s.Close() }) // which never fails
	return s
}

// fresh returns a store in a schema of its own.
func fresh(t testing.TB) *store {
	server := postgres.Shared(t)
	return open(t, server.URL(), server.Schema(t))
}

// reopen returns the store of the next term.
func (s *store) reopen(t testing.TB) *store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, s.url, s.schema)
}

// ask returns the number that a query finds in the store's schema.
func (s *store) ask(t testing.TB, query string) (n int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgres.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(t.Context(), strings.ReplaceAll(query, "jobhost.", s.schema+".")).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestStore(t *testing.T) {
	t.Parallel()
	statetest.Run(t, statetest.Harness{
		Open:   func(t testing.TB) state.Store { return fresh(t) },
		Reopen: func(t testing.TB, s state.Store) state.Store { return s.(*store).reopen(t) },
	})
}
