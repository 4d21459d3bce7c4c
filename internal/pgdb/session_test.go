package pgdb_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestReadsAfterCut: a read succeeds although all connections of the pool were lost, as after a restart of the server.
func TestReadsAfterCut(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	db := open(t, server.URLAt(proxy.Port()), server.Schema(t), "a")
	for name, read := range map[string]func() error{
		"read": func() error { return db.Read(t.Context(), func(*pgdb.Session) error { return nil }) },
		"ask":  func() error { return db.Ask(t.Context(), func(b *pgx.Batch) { b.Queue("SELECT 1") }) },
	} {
		if err := readAtOnce(t, db, 3); err != nil {
			t.Fatal(err)
		}
		proxy.Cut()
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadsWaitForTheServer: a read that comes while the server restarts is answered afterwards.
func TestReadsWaitForTheServer(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t)
	db := open(t, server.URL(), server.Schema(t), "a")
	for name, read := range map[string]func() error{
		"read": func() error { return db.Read(t.Context(), func(*pgdb.Session) error { return nil }) },
		"ask":  func() error { return db.Ask(t.Context(), func(b *pgx.Batch) { b.Queue("SELECT 1") }) },
	} {
		server.Crash(t)
		answered := make(chan error, 1)
		go func() { answered <- read() }()
		server.Restart(t)
		if err := <-answered; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// readAtOnce lets the pool open so many connections.
func readAtOnce(t *testing.T, db *pgdb.DB, n int) error {
	if n == 0 {
		return nil
	}
	return db.Read(t.Context(), func(*pgdb.Session) error { return readAtOnce(t, db, n-1) })
}
