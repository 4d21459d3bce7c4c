package pgdb_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

func TestMain(m *testing.M) { postgres.Main(m) }

// sums is a schema with one table, of numbers by key.
var sums = pgdb.Schema{Name: "sums", Steps: []string{"CREATE TABLE jobhost.sums (key text PRIMARY KEY, n bigint NOT NULL)"}}

// open opens a database, brings it up to date and closes it with the test.
func open(t testing.TB, url, schema, host string) *pgdb.DB {
	t.Helper()
	return openWith(t, config(url, schema, host))
}

func openWith(t testing.TB, cfg pgdb.Config) *pgdb.DB {
	t.Helper()
	db, err := pgdb.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(t.Context(), []pgdb.Schema{sums}); err != nil {
		t.Fatal(err)
	}
	return db
}

func config(url, schema, host string) pgdb.Config {
	return pgdb.Config{URL: url, Schema: schema, Host: host, Address: host + ":7070", Relaxed: true, Logger: slog.New(slog.DiscardHandler)}
}

// image keeps numbers by key; it implements [pgdb.Member].
type image struct {
	db     *pgdb.DB
	known  map[string]int64 // as in the database
	next   map[string]int64 // of the commit in the making
	wanted map[string]bool
}

func newImage(db *pgdb.DB) *image {
	return &image{db: db, known: map[string]int64{}, next: map[string]int64{}, wanted: map[string]bool{}}
}

func (m *image) get(tx *pgdb.Tx, key string) int64 {
	if n, ok := m.next[key]; ok {
		return n
	}
	n, ok := m.known[key]
	if !ok {
		m.wanted[key] = true
		if tx.Miss() {
			return m.known[key]
		}
	}
	return n
}

func (m *image) Read(b *pgx.Batch) {
	keys := make([]string, 0, len(m.wanted))
	for key := range m.wanted {
		keys = append(keys, key)
	}
	clear(m.wanted)
	b.Queue(m.db.SQL("SELECT key, n FROM jobhost.sums WHERE key=ANY($1)"), keys).Query(func(rows pgx.Rows) error {
		for _, key := range keys {
			m.known[key] = 0
		}
		var key string
		var n int64
		_, err := pgx.ForEachRow(rows, []any{&key, &n}, func() error {
			m.known[key] = n
			return nil
		})
		return err
	})
}

func (m *image) Flush(b *pgx.Batch) error {
	var keys []string
	var numbers []int64
	for key, n := range m.next {
		keys, numbers = append(keys, key), append(numbers, n)
	}
	b.Queue(m.db.SQL("INSERT INTO jobhost.sums SELECT * FROM unnest($1::text[], $2::bigint[]) ON CONFLICT (key) DO UPDATE SET n=excluded.n"), keys, numbers)
	return nil
}

func (m *image) AfterCommit() {
	for key, n := range m.next {
		m.known[key] = n
	}
	clear(m.next)
}

func (m *image) Flushed() {
	clear(m.next)
	clear(m.known)
}

func (m *image) AfterRollback() { clear(m.next) }

// add adds to a number; it implements [pgdb.Change].
type add struct {
	image *image
	key   string
	delta int64
	sum   int64
	fail  error // that Apply returns
	done  chan error
}

func (a *add) Size() (ops, bytes int) { return 1, len(a.key) }

func (a *add) Apply(tx *pgdb.Tx) error {
	tx.Join(a.image)
	a.sum = a.image.get(tx, a.key) + a.delta
	a.image.next[a.key] = a.sum
	return a.fail
}

func (a *add) Done(err error) { a.done <- err }

// double doubles all numbers by a statement, and returns what becomes of one; it implements [pgdb.Change].
type double struct{ add }

func (d *double) Apply(tx *pgdb.Tx) error {
	tx.Join(d.image)
	s := tx.Direct()
	if s == nil {
		return nil
	}
	if _, err := s.Exec("UPDATE jobhost.sums SET n=n*2"); err != nil {
		return err
	}
	d.sum = d.image.get(tx, d.key)
	return d.fail
}

// host is a host that leads, with a writer.
type host struct {
	db     *pgdb.DB
	term   *pgdb.Term
	writer *pgdb.Writer
	image  *image
}

// lead begins a term and its writer; between is called between the two.
func lead(t testing.TB, db *pgdb.DB, between ...func()) *host {
	t.Helper()
	term, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range between {
		f()
	}
	w, err := term.NewWriter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := &host{db: db, term: term, writer: w, image: newImage(db)}
	var once sync.Once
	t.Cleanup(func() { once.Do(func() { h.writer.Close(); _ = h.term.Release(context.Background()) }) })
	return h
}

func (h *host) add(key string, delta int64) (sum int64, err error) {
	a := h.newAdd(key, delta)
	h.writer.Write(a)
	return a.wait()
}

func (h *host) double(key string) (sum int64, err error) {
	d := &double{*h.newAdd(key, 0)}
	h.writer.Write(d)
	return d.wait()
}

func (h *host) newAdd(key string, delta int64) *add {
	return &add{image: h.image, key: key, delta: delta, done: make(chan error, 1)}
}

func (a *add) wait() (sum int64, err error) {
	select {
	case err = <-a.done:
		return a.sum, err
	case <-time.After(time.Minute):
		return 0, errors.New("Done was not called for a minute")
	}
}

// stored returns the numbers in the database.
func stored(t testing.TB, db *pgdb.DB) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	err := db.Read(t.Context(), func(s *pgdb.Session) error {
		var key string
		var n int64
		return s.Each([]any{&key, &n}, func() error { sums[key] = n; return nil }, "SELECT key, n FROM jobhost.sums")
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}
