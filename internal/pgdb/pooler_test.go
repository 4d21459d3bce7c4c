package pgdb_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestPoolerOfSessions: a pooler that keeps a session for each connection works like the server itself.
func TestPoolerOfSessions(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	url, schema := server.URLAt(server.Pooler(t, "session")), server.Schema(t)
	a := lead(t, open(t, url, schema, "a"))
	for range 10 {
		if _, err := a.add("x", 1); err != nil {
			t.Fatal(err)
		}
	}
	other := open(t, url, schema, "b")
	l, err := other.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if there, err := other.HasSession(t.Context(), l); err != nil || !there {
		t.Errorf("the session of the leader is there: %v, %v", there, err)
	}
	term, err := other.TakeOver(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = term.Release(context.Background()) })
	if _, err := a.add("x", 1); err == nil {
		t.Error("the old leader has written")
	}
	if sums := stored(t, other); sums["x"] != 10 {
		t.Errorf("got %v", sums)
	}
}

// TestPoolerOfTransactions: poolers that give a session to several connections are refused, also while others use them.
func TestPoolerOfTransactions(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]string{
		"transaction": nil, "transaction, by turns": {"server_round_robin = 1"}, "transaction, one session": {"default_pool_size = 1"}, "statement": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := postgres.Shared(t)
			mode, _, _ := strings.Cut(name, ",")
			url := server.URLAt(server.Pooler(t, mode, options...))
			refused(t, url)
			beside(t, url)
			for range 30 {
				refused(t, url)
			}
		})
	}
}

func refused(t *testing.T, url string) {
	t.Helper()
	db, err := pgdb.Open(t.Context(), config(url, "jh_pooled", "a"))
	if err == nil {
		db.Close()
		t.Fatal("the pooler was not refused")
	}
	if !strings.Contains(err.Error(), "pool_mode = transaction") {
		t.Fatal(err)
	}
}

// beside lets others use a pooler, until the test ends.
func beside(t *testing.T, url string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var others sync.WaitGroup
	for range 4 {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		others.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				_, _ = conn.PgConn().Exec(ctx, "SELECT 1").ReadAll()
				<-tick.C
			}
			_ = conn.Close(context.Background())
		})
	}
	t.Cleanup(func() { stop(); others.Wait() })
}

// TestPoolerWithoutRoom: a pooler with too few sessions for a host is refused, with a hint.
func TestPoolerWithoutRoom(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	_, err := pgdb.Open(t.Context(), config(server.URLAt(server.Pooler(t, "session", "default_pool_size = 1")), "jh_pooled", "a"))
	if err == nil || !strings.Contains(err.Error(), "no further session") {
		t.Errorf("got %v", err)
	}
}
