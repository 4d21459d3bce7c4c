package workflow_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

func TestMain(m *testing.M) { postgres.Main(m) }

// store is what a site is on.
type store interface {
	record.Store
	Failed() <-chan struct{}
}

// opened is a store that was opened for a test, with ways past it.
type opened struct {
	store
	sums bool // its rows have checksums
	// rows counts the rows of all tables that have any.
	rows func(t testing.TB) map[string]int64
	// exec changes rows behind everybody's back, while no queue is on the store.
	exec func(t testing.TB, sql string)
}

// opener opens an empty store, which is closed with the test.
type opener func(t testing.TB) opened

// eachStore runs a test on each kind of store.
func eachStore(t *testing.T, test func(t *testing.T, open opener)) {
	t.Parallel()
	for name, open := range map[string]opener{"sqlite": openSQLite, "postgres": openPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

func openSQLite(t testing.TB) opened {
	t.Helper()
	db, err := sqlitedb.Open(sqlitedb.Options{Schemas: sqlitequeue.Schemas()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	q, err := sqlitequeue.New(db)
	if err != nil {
		t.Fatal(err)
	}
	return opened{
		store: q, sums: true,
		rows: func(t testing.TB) map[string]int64 { return rowsOf(t, db) },
		exec: func(t testing.TB, sql string) {
			t.Helper()
			d := &damage{sql, make(chan error, 1)}
			db.Write(d)
			if err := <-d.done; err != nil {
				t.Fatal(err)
			}
		},
	}
}

// damage is a change of rows behind everybody's back.
type damage struct {
	sql  string
	done chan error
}

func (*damage) Ops() int                      { return 1 }
func (d *damage) Apply(tx *sqlitedb.Tx) error { return tx.Stmt(d.sql).Exec() }
func (d *damage) Done(err error)              { d.done <- err }

// rowsOf counts the rows of all tables that have any.
func rowsOf(t testing.TB, db *sqlitedb.DB) map[string]int64 {
	t.Helper()
	rows := map[string]int64{}
	err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
		var tables []string
		st := r.Stmt("SELECT name FROM sqlite_schema WHERE type='table'")
		for st.Step() {
			tables = append(tables, st.ColText(0))
		}
		if err := st.Done(); err != nil {
			return err
		}
		for _, table := range tables {
			st := r.Stmt("SELECT count(*) FROM " + table)
			if st.Step() && st.ColInt(0) > 0 {
				rows[table] = st.ColInt(0)
			}
			if err := st.Done(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// term is a store on PostgreSQL in a term of its own.
type term struct {
	*pgqueue.Store
	writer *pgdb.Writer
	term   *pgdb.Term
}

// begin begins a term.
func begin(t testing.TB, db *pgdb.DB) *term {
	t.Helper()
	of, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := of.NewWriter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q, err := pgqueue.New(t.Context(), db, of, w)
	if err != nil {
		t.Fatal(err)
	}
	return &term{q, w, of}
}

func (p *term) end(t testing.TB) {
	t.Helper()
	p.writer.Close()
	if err := p.term.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

func openPostgres(t testing.TB) opened {
	t.Helper()
	return openServer(t, postgres.Shared(t))
}

func openServer(t testing.TB, server *postgres.Server) opened {
	t.Helper()
	schema := server.Schema(t)
	db, err := pgdb.Open(t.Context(), pgdb.Config{
		URL: server.URL(), Schema: schema, Host: "a", Address: "a:7070", Relaxed: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(t.Context(), pgqueue.Schemas()); err != nil {
		t.Fatal(err)
	}
	now := begin(t, db)
	t.Cleanup(func() { now.end(t) })
	return opened{
		store: now,
		rows: func(t testing.TB) map[string]int64 {
			t.Helper()
			return postgresRows(t, server, schema)
		},
		exec: func(t testing.TB, sql string) {
			t.Helper()
			// The image of a term knows nothing of the change, and so goes with it.
			now.end(t)
			server.Exec(t, "SET search_path TO "+schema+"; "+sql)
			*now = *begin(t, db)
		},
	}
}

func postgresRows(t testing.TB, server *postgres.Server, schema string) map[string]int64 {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	tables, _ := conn.Query(ctx, "SELECT tablename FROM pg_tables WHERE schemaname=$1", schema)
	names, err := pgx.CollectRows(tables, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int64{}
	for _, name := range names {
		var n int64
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+schema+"."+name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			rows[name] = n
		}
	}
	return rows
}
