package pgdb_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// session opens a session of another program, and runs statements in it.
func session(t testing.TB, server *postgres.Server, statements ...string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	execute(t, conn, statements...)
	return conn
}

func execute(t testing.TB, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// awaitWaiting waits until a session waits for a lock on a table.
func awaitWaiting(t testing.TB, conn *pgx.Conn, table string) {
	t.Helper()
	for waits := false; !waits; {
		if err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation=$1::regclass)", table).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeaseOnSlowServer: a leader renews its lease in time if each round trip to the server takes 0.3 s.
func TestLeaseOnSlowServer(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	db := open(t, server.URLAt(proxy.Port()), server.Schema(t), "a")
	proxy.Slow(300 * time.Millisecond)
	term, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = term.Release(context.Background()) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for age, before := term.LeaseAge(), time.Duration(0); age >= before; age, before = term.LeaseAge(), age {
		select {
		case <-tick.C:
		case <-term.Done():
			t.Fatal(term.Err())
		}
	}
	proxy.Slow(0)
}

// TestLockedTable: a commit waits for a lock of others as long as it may, and no longer. What it was to do can be done later.
func TestLockedTable(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	cfg := config(server.URL(), server.Schema(t), "a")
	cfg.LockTime = 100 * time.Millisecond
	h := lead(t, openWith(t, cfg))
	if _, err := h.add("x", 1); err != nil {
		t.Fatal(err)
	}
	other := session(t, server, "BEGIN", "LOCK TABLE "+cfg.Schema+".sums IN EXCLUSIVE MODE")
	if _, err := h.add("x", 1); jobhost.CodeOf(err) != jobhost.CodeUnavailable || errors.Is(err, pgdb.ErrTermOver) {
		t.Errorf("while the table is locked: %v", err)
	}
	if _, err := h.double("x"); jobhost.CodeOf(err) != jobhost.CodeUnavailable || errors.Is(err, pgdb.ErrTermOver) {
		t.Errorf("by a statement, while the table is locked: %v", err)
	}
	execute(t, other, "ROLLBACK")
	if sum, err := h.add("x", 1); sum != 2 || err != nil {
		t.Errorf("after that: %d, %v", sum, err)
	}
}

// TestMigrationLetsOthersPass: a migration that waits for a dump doesn't keep the host that leads waiting behind it.
func TestMigrationLetsOthersPass(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	h := lead(t, open(t, server.URL(), schema, "a"))
	dump := session(t, server, "BEGIN", "SELECT FROM "+schema+".sums")
	later := pgdb.Schema{Name: "sums", Steps: append(sums.Steps[:1:1], "ALTER TABLE jobhost.sums ADD COLUMN m bigint")}
	migrated := make(chan error, 1)
	go func() { migrated <- h.db.Migrate(t.Context(), []pgdb.Schema{later}) }()
	awaitWaiting(t, session(t, server), schema+".sums")
	if sum, err := h.add("x", 1); sum != 1 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
	execute(t, dump, "COMMIT")
	if err := <-migrated; err != nil {
		t.Error(err)
	}
}

// TestSlowReadsLeaveAConnection: however many lists are read, what tasks need is read beside them.
func TestSlowReadsLeaveAConnection(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	db := open(t, server.URL(), schema, "a")
	session(t, server, "BEGIN", "LOCK TABLE "+schema+".sums")
	ctx, cancel := context.WithCancel(t.Context())
	var lists sync.WaitGroup
	for range 8 {
		lists.Go(func() {
			_ = db.Read(ctx, func(s *pgdb.Session) error {
				_, err := s.Exec("SELECT FROM jobhost.sums")
				return err
			})
		})
	}
	defer lists.Wait()
	defer cancel()
	watch := session(t, server)
	for waiting := 0; waiting < 3; {
		if err := watch.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation=$1::regclass", schema+".sums").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	err := db.Ask(t.Context(), func(b *pgx.Batch) {
		b.Queue("SELECT 1").QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	})
	if n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestReadsOnFullServer: where the server has no more connections to give, those that there are serve one read after the other.
func TestReadsOnFullServer(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t, "max_connections=12")
	db := open(t, server.URL(), "jobhost", "a")
	if _, err := db.Hosts(t.Context()); err != nil { // which has a connection then
		t.Fatal(err)
	}
	for {
		conn, err := pgx.Connect(t.Context(), server.URL())
		if err != nil {
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || !strings.Contains(refused.Message, "too many clients") {
				t.Fatal(err)
			}
			break
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := db.Read(t.Context(), func(s *pgdb.Session) error {
				_, err := s.Exec("SELECT pg_sleep(0.05)")
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestHostsOfSilentServer: who asks for the hosts while the server says nothing learns that, and doesn't wait for it.
func TestHostsOfSilentServer(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	db := open(t, server.URLAt(proxy.Port()), server.Schema(t), "a")
	proxy.Stall(postgres.ToClient)
	defer proxy.Flow()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := db.Hosts(ctx); jobhost.CodeOf(err) != jobhost.CodeUnavailable || ctx.Err() != nil {
		t.Errorf("got %v", err)
	}
}
