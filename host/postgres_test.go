package host_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state/pgstate"
)

func TestMain(m *testing.M) { postgres.Main(m) }

// onPostgres gives a host the stores of a term in a schema of its own, which end with the test.
func onPostgres(t testing.TB, cfg *host.Config) {
	t.Helper()
	onSchema(t, cfg, postgres.Shared(t).Schema(t))
}

func onSchema(t testing.TB, cfg *host.Config, schema string) {
	t.Helper()
	ctx := context.Background()
	db, err := pgdb.Open(ctx, pgdb.Config{
		URL: postgres.Shared(t).URL(), Schema: schema, Host: "a", Address: "a:1", Relaxed: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(ctx, append(pgqueue.Schemas(), pgstate.Schemas()...)); err != nil {
		t.Fatal(err)
	}
	term, err := db.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w, err := term.NewWriter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	states, err := pgstate.New(ctx, db, term, w)
	if err != nil {
		t.Fatal(err)
	}
	store, err := pgqueue.New(ctx, db, term, w, states)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = states.Close()
		w.Close()
		if err := term.Release(context.Background()); err != nil {
			t.Error(err)
		}
		db.Close()
	})
	cfg.Store, cfg.States = store, states
}

// TestOnPostgres: a host does on PostgreSQL what it does on SQLite.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, func(t testing.TB) jobhost.Server { return hosttest.OpenOn(t, onPostgres) })
}

func TestWorkflowsOnPostgres(t *testing.T) {
	t.Parallel()
	hosttest.RunWorkflows(t, func(t testing.TB) jobhost.Server { return hosttest.OpenOn(t, onPostgres) })
}
