package pgdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// set sets numbers in one message.
func set(ctx context.Context, db *pgdb.DB, numbers map[string]int) error {
	return db.Send(ctx, func(b *pgx.Batch) {
		for key, n := range numbers {
			b.Queue(db.SQL("INSERT INTO jobhost.sums VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET n=excluded.n"), key, n)
		}
	})
}

// TestSend: what is sent in one message is one transaction, and needs no term.
func TestSend(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	db := open(t, server.URL(), server.Schema(t), "a")
	if err := set(t.Context(), db, map[string]int{"x": 1, "y": 2}); err != nil {
		t.Fatal(err)
	}
	err := db.Send(t.Context(), func(b *pgx.Batch) {
		b.Queue(db.SQL("UPDATE jobhost.sums SET n=n+1"))
		b.Queue("SELECT 1/0")
	})
	if jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	if got := stored(t, db); got["x"] != 1 || got["y"] != 2 {
		t.Errorf("a message that failed has left %v", got)
	}
}

// TestSendCut cuts the connections after each number of bytes that a message sends or gets: it is sent again, and what
// was acknowledged is there.
func TestSendCut(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	db := open(t, server.URLAt(proxy.Port()), server.Schema(t), "a")
	const step = 19
	for _, way := range []postgres.Direction{postgres.ToServer, postgres.ToClient} {
		for k := rand.Int64N(step); k < 500; k += step {
			proxy.CutAfter(way, k)
			if err := set(t.Context(), db, map[string]int{"x": int(k)}); err != nil {
				t.Fatalf("cut after %d bytes in direction %d: %v", k, way, err)
			}
			proxy.CutAfter(way, -1)
			if got := stored(t, db)["x"]; got != k {
				t.Fatalf("cut after %d bytes in direction %d: got %d", k, way, got)
			}
		}
	}
}

// TestSendGivesUp: a caller that gives up while the server waits for a lock gets the cause, and later callers are
// served.
func TestSendGivesUp(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	schema := server.Schema(t)
	db := open(t, server.URL(), schema, "a")
	if err := set(t.Context(), db, map[string]int{"x": 1}); err != nil {
		t.Fatal(err)
	}
	holder, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(context.Background()) }()
	if _, err := holder.Exec(t.Context(), fmt.Sprintf("BEGIN; UPDATE %s.sums SET n=7", schema)); err != nil {
		t.Fatal(err)
	}
	gaveUp := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	var group sync.WaitGroup
	for range 8 { // more than there are connections
		group.Go(func() {
			if err := set(ctx, db, map[string]int{"x": 2}); !errors.Is(err, gaveUp) {
				t.Errorf("got %v", err)
			}
		})
	}
	if got := stored(t, db)["x"]; got != 1 { // reads have connections of their own
		t.Errorf("got %d", got)
	}
	cancel(gaveUp)
	group.Wait()
	if _, err := holder.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := set(t.Context(), db, map[string]int{"y": 3}); err != nil || stored(t, db)["y"] != 3 {
		t.Errorf("after that: %v", err)
	}
}
