package queue_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestModelOnPostgres is [TestModel] over a store on PostgreSQL, for which a check takes seconds: there are few of them,
// and the rest with JOBHOST_CHAOS=1.
func TestModelOnPostgres(t *testing.T) {
	t.Parallel()
	server := postgres.Start(t)
	left := 4
	if os.Getenv("JOBHOST_CHAOS") != "" {
		left = 100
	}
	rapid.Check(t, func(rt *rapid.T) {
		if left == 0 {
			return
		}
		left--
		schema := server.Schema(t)
		var thrown any
		synctest.Test(t, func(*testing.T) {
			defer func() { thrown = recover() }()
			runModel(rt, func() (record.Store, error) { return openInBubble(server.URL(), schema) })
		})
		if thrown != nil {
			panic(thrown)
		}
	})
}

// inBubble is a store that shows the time of the bubble, and not that of the server.
type inBubble struct {
	*pgqueue.Store
	end func()
}

func (b *inBubble) Now() time.Time { return time.Now() }

func (b *inBubble) Close() error {
	b.end()
	return b.Store.Close()
}

func openInBubble(url, schema string) (record.Store, error) {
	ctx := context.Background()
	db, err := pgdb.Open(ctx, pgdb.Config{
		URL: url, Schema: schema, Host: "a", Address: "a:1", Relaxed: true, Lease: 1000 * time.Hour, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, pgqueue.Schemas()); err != nil {
		return nil, err
	}
	term, err := db.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	w, err := term.NewWriter(ctx)
	if err != nil {
		return nil, err
	}
	s, err := pgqueue.New(ctx, db, term, w)
	if err != nil {
		return nil, err
	}
	return &inBubble{s, func() {
		w.Close()
		_ = term.Release(ctx) // the schema goes with the test
		db.Close()
	}}, nil
}
