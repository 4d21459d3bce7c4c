package pgpayload_test

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
	"github.com/jobhost/jobhost/state/payload/pgpayload"
)

func TestMain(m *testing.M) { postgres.Main(m) }

// open opens a schema of a server, which is brought up to date, as another host does. It is closed with the test.
func open(t testing.TB, url, schema string) *pgdb.DB {
	t.Helper()
	db, err := pgdb.Open(t.Context(), pgdb.Config{URL: url, Schema: schema, Host: "a", Address: "a:7070", Relaxed: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(t.Context(), pgpayload.Schemas()); err != nil {
		t.Fatal(err)
	}
	return db
}

// exec runs a statement and returns how many rows it has changed.
func exec(t testing.TB, db *pgdb.DB, sql string, args ...any) (changed int64) {
	t.Helper()
	err := db.Send(t.Context(), func(b *pgx.Batch) {
		b.Queue(db.SQL(sql), args...).Query(func(rows pgx.Rows) error {
			rows.Close()
			changed = rows.CommandTag().RowsAffected()
			return rows.Err()
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// left tells what there is besides objects that are whole.
func left(t testing.TB, db *pgdb.DB) (list []string) {
	t.Helper()
	err := db.Read(t.Context(), func(s *pgdb.Session) error {
		var text string
		add := func() error { list = append(list, text); return nil }
		return s.Each([]any{&text}, add, `SELECT 'partial ' || key FROM jobhost.payload_partial
			UNION ALL SELECT key || ' has no piece ' || n FROM jobhost.payload_object o, generate_series(0, o.pieces-1) n
				WHERE NOT EXISTS (SELECT FROM jobhost.payload_piece p WHERE p.key=o.key AND p.n=n.n)
			UNION ALL SELECT 'piece ' || key || ' ' || n FROM jobhost.payload_piece p
				WHERE NOT EXISTS (SELECT FROM jobhost.payload_object o WHERE o.key=p.key AND p.n<o.pieces)`)
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// places knows where the suite's stores are.
type places struct{ m sync.Map }

type place struct {
	schema string
	db     *pgdb.DB
}

func (p *places) open(t testing.TB, server *postgres.Server, schema string) payload.Store {
	db := open(t, server.URL(), schema)
	s := pgpayload.New(db)
	p.m.Store(s, place{schema, db})
	return s
}

func (p *places) of(s payload.Store) place {
	got, _ := p.m.Load(s)
	return got.(place)
}

func TestStore(t *testing.T) {
	server := postgres.Shared(t)
	var p places
	payloadtest.Run(t, payloadtest.Harness{
		Open:  func(t testing.TB) payload.Store { return p.open(t, server, server.Schema(t)) },
		Again: func(t testing.TB, s payload.Store) payload.Store { return p.open(t, server, p.of(s).schema) },
		Damage: func(t testing.TB, s payload.Store, key string) {
			const half = "octet_length(data)/2"
			n := exec(t, p.of(s).db, "UPDATE jobhost.payload_piece SET data=set_byte(data, "+half+", get_byte(data, "+half+")#1) WHERE key=$1 AND n=0", key)
			if n != 1 {
				t.Fatalf("%d pieces were damaged", n)
			}
		},
		Left: func(t testing.TB, s payload.Store) []string { return left(t, p.of(s).db) },
		Lose: func(t testing.TB, s payload.Store, key string) {
			if n := exec(t, p.of(s).db, "DELETE FROM jobhost.payload_piece WHERE key=$1 AND n=0", key); n != 1 {
				t.Fatalf("%d pieces were lost", n)
			}
		},
		Gone: func(t testing.TB) payload.Store {
			proxy := postgres.NewProxy(t, server.Address())
			db := open(t, server.URLAt(proxy.Port()), server.Schema(t))
			proxy.Close()
			return pgpayload.New(db)
		},
	})
}
