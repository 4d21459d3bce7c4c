package pgdb_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestLockOfOthers: any role of the database can take the lock of migrations, and keep it. That keeps no host from starting that
// has nothing to migrate.
func TestLockOfOthers(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t) // the lock is the database's
	db := open(t, server.URL(), "jobhost", "a")
	server.Exec(t, "CREATE ROLE other LOGIN")
	conn, err := pgx.Connect(t.Context(), "postgres://other@"+server.Address()+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock(x'6a6f62686f737431'::bit(64)::bigint)"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := db.Migrate(ctx, []pgdb.Schema{sums}); err != nil {
		t.Error(err)
	}
}
