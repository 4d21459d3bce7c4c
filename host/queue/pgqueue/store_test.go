package pgqueue_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

func TestMain(m *testing.M) { postgres.Main(m) }

// store is a store with what it is made of.
type store struct {
	*pgqueue.Store
	schema string
	once   sync.Once
	end    func()
}

// Close ends the term too.
func (s *store) Close() error {
	s.once.Do(s.end)
	return s.Store.Close()
}

// open returns the store of a new term in a schema, which is closed with the test.
func open(t testing.TB, schema string, companions ...pgqueue.Companion) *store {
	t.Helper()
	return openOn(t, postgres.Shared(t), schema, companions...)
}

func openOn(t testing.TB, server *postgres.Server, schema string, companions ...pgqueue.Companion) *store {
	t.Helper()
	return openWith(t, server, schema, pgqueue.Schemas(), func(*pgdb.DB, *pgdb.Term, *pgdb.Writer) []pgqueue.Companion { return companions })
}

// openCounted returns a store with a proxy that counts its round trips.
func openCounted(t testing.TB) (*store, *postgres.Proxy) {
	t.Helper()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	none := func(*pgdb.DB, *pgdb.Term, *pgdb.Writer) []pgqueue.Companion { return nil }
	return openAt(t, server.URLAt(proxy.Port()), server.Schema(t), pgqueue.Schemas(), none), proxy
}

// openWith returns a store with companions that share its database and its writer.
func openWith(t testing.TB, server *postgres.Server, schema string, schemas []pgdb.Schema,
	companions func(*pgdb.DB, *pgdb.Term, *pgdb.Writer) []pgqueue.Companion,
) *store {
	t.Helper()
	return openAt(t, server.URL(), schema, schemas, companions)
}

// openAt returns a store in the database with an address.
func openAt(t testing.TB, url, schema string, schemas []pgdb.Schema,
	companions func(*pgdb.DB, *pgdb.Term, *pgdb.Writer) []pgqueue.Companion,
) *store {
	t.Helper()
	db, err := pgdb.Open(t.Context(), pgdb.Config{
		URL: url, Schema: schema, Host: "a", Address: "a:7070", Relaxed: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context(), schemas); err != nil {
		t.Fatal(err)
	}
	term, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := term.NewWriter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q, err := pgqueue.New(t.Context(), db, term, w, companions(db, term, w)...)
	if err != nil {
		t.Fatal(err)
	}
	s := &store{Store: q, schema: schema, end: func() {
		w.Close()
		if err := term.Release(context.Background()); err != nil {
			t.Error(err)
		}
		db.Close()
	}}
	t.Cleanup(func() { _ = s.Close() }) // which never fails
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	h := queuetest.Harness{
		Slow: true,
		Open: func(t testing.TB) record.Store { return open(t, postgres.Shared(t).Schema(t)) },
		Reopen: func(t testing.TB, s record.Store) record.Store {
			old := s.(*store)
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, old.schema)
		},
		Fault: func(t testing.TB, s record.Store) { // the writer's connection is lost
			postgres.Shared(t).Exec(t, "SELECT pg_terminate_backend(backend) FROM "+s.(*store).schema+".lease")
		},
	}
	queuetest.Run(t, h)
	t.Run("workflows", func(t *testing.T) { queuetest.RunWorkflows(t, h) })
}
