package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/pgqueue"
	"github.com/jobhost/jobhost/host/queue/queuetest"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// movable is a store on SQLite, or what became of it in PostgreSQL.
type movable struct {
	record.Store
	dir    string // of SQLite
	schema string // of PostgreSQL
	once   sync.Once
	end    func() error
}

// Close also ends what the store is made of.
func (s *movable) Close() (err error) {
	s.once.Do(func() { err = errors.Join(s.Store.Close(), s.end()) })
	return err
}

// Schedules returns the states of schedules, which both stores have.
func (s *movable) Schedules(ctx context.Context) ([]record.ScheduleState, error) {
	return s.Store.(interface {
		Schedules(ctx context.Context) ([]record.ScheduleState, error)
	}).Schedules(ctx)
}

// openSQLite returns a store in a folder, which is closed with the test.
func openSQLite(t testing.TB, dir string) *movable {
	t.Helper()
	db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Relaxed: true, Schemas: schemas()})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := sqlitequeue.New(db)
	if err != nil {
		t.Fatal(err)
	}
	s := &movable{Store: jobs, dir: dir, end: db.Close}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// openSchema returns a database, which is closed with the test.
func openSchema(t testing.TB, url, schema string) *pgdb.DB {
	t.Helper()
	db, err := pgdb.Open(context.Background(), pgdb.Config{
		URL: url, Schema: schema, Host: "a", Address: "a:7070", Relaxed: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// openTerm begins a term in a schema. The function ends it.
func openTerm(t testing.TB, url, schema string) (*pgdb.DB, *pgdb.Term, *pgdb.Writer, func() error) {
	t.Helper()
	ctx, db := context.Background(), openSchema(t, url, schema)
	term, err := db.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w, err := term.NewWriter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return db, term, w, func() error {
		w.Close()
		err := term.Release(ctx)
		db.Close()
		return err
	}
}

// openPostgres returns the store of a new term in a schema, which is closed with the test.
func openPostgres(t testing.TB, url, schema string) *movable {
	t.Helper()
	db, term, w, end := openTerm(t, url, schema)
	jobs, err := pgqueue.New(context.Background(), db, term, w)
	if err != nil {
		t.Fatal(err)
	}
	s := &movable{Store: jobs, schema: schema, end: end}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// moveRows moves the rows of a folder into a schema. begin is called when that begins.
func moveRows(ctx context.Context, t testing.TB, dir, url, schema string, begin ...func()) (*moved, error) {
	t.Helper()
	v := &move{dir: dir, db: openSchema(t, url, schema)}
	var err error
	if v.source, err = sqlitedb.OpenSource(dir, schemas()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := v.source.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := v.db.Migrate(ctx, sharedSchemas()); err != nil {
		t.Fatal(err)
	}
	term, err := v.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = term.Release(context.WithoutCancel(ctx)) }() // its lease ends
	for _, f := range begin {
		f()
	}
	return &v.moved, v.rows(ctx, term)
}

// files returns the content of the database's files in a folder. The index of the log is not the database's.
func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range []string{sqlitedb.FileName, sqlitedb.FileName + "-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		all[name] = data
	}
	return all
}

// moving is a harness in which a store is opened again in PostgreSQL.
func moving(server *postgres.Server) queuetest.Harness {
	return queuetest.Harness{
		Open: func(t testing.TB) record.Store { return openSQLite(t, t.TempDir()) },
		Reopen: func(t testing.TB, s record.Store) record.Store {
			t.Helper()
			was := s.(*movable)
			if err := was.Close(); err != nil {
				t.Fatal(err)
			}
			if was.schema != "" {
				return openPostgres(t, server.URL(), was.schema)
			}
			before, schema := files(t, was.dir), server.Schema(t)
			if _, err := moveRows(t.Context(), t, was.dir, server.URL(), schema); err != nil {
				t.Fatal(err)
			}
			for name, data := range files(t, was.dir) {
				if !bytes.Equal(data, before[name]) {
					t.Errorf("%s was changed", name)
				}
			}
			return openPostgres(t, server.URL(), schema)
		},
	}
}

// TestMovedStore: what random changes have made of a store on SQLite is the same in PostgreSQL, and so is what further
// changes make of it there. The suite of all stores is passed by those that move when they are opened again.
func TestMovedStore(t *testing.T) {
	t.Parallel()
	h := moving(postgres.Shared(t))
	queuetest.RunMoved(t, h, 15)
	queuetest.Run(t, h)
	t.Run("workflows", func(t *testing.T) { queuetest.RunWorkflows(t, h) })
}

// sampler is a context that looks, once in a while under it, how much memory is in use.
type sampler struct {
	context.Context
	asked int
	most  uint64
}

// Err implements [context.Context].
func (c *sampler) Err() error {
	if c.asked++; c.asked%32 == 0 {
		c.most = max(c.most, inUse())
	}
	return c.Context.Err()
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMoveMemory: of what is moved only a little is in memory at one time.
func TestMoveMemory(t *testing.T) { //nolint:paralleltest // it measures memory, which other tests would use beside it
	const jobs, size, most = 200, 256 << 10, 24 << 20
	dir := t.TempDir()
	fillStore(t, dir, jobs, make([]byte, size))
	server := postgres.Shared(t)
	c, before := &sampler{Context: t.Context()}, inUse()
	if _, err := moveRows(c, t, dir, server.URL(), server.Schema(t)); err != nil {
		t.Fatal(err)
	}
	if grown := int64(c.most) - int64(before); grown > most || c.most == 0 {
		t.Errorf("%d bytes of %d were in memory", grown, jobs*size)
	}
}

// TestMoveLeads: while a store is moved no host can lead, and after that one can.
func TestMoveLeads(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	dir, schema := t.TempDir(), server.Schema(t)
	fillStore(t, dir, 10, nil)
	_, err := moveRows(t.Context(), t, dir, server.URL(), schema, func() {
		db := openSchema(t, server.URL(), schema)
		l, err := db.Leader(t.Context())
		if why := l.Vacant(db.Lease()); err != nil || why != "" {
			t.Errorf("no host leads: %s, %v", why, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	db := openSchema(t, server.URL(), schema)
	l, err := db.Leader(t.Context())
	if why := l.Vacant(db.Lease()); err != nil || why != "released" {
		t.Errorf("the term was not released: %q, %v", why, err)
	}
}

// fillStore puts jobs into a folder.
func fillStore(t testing.TB, dir string, jobs int, payload []byte) {
	t.Helper()
	s := openSQLite(t, dir)
	for from := 0; from < jobs; from += 1000 {
		ops := make([]record.Op, min(1000, jobs-from))
		for i := range ops {
			ops[i] = &record.Submit{Job: &record.JobSpec{
				ID: fmt.Sprintf("job-%06d", from+i), Worker: "w", Tasks: 1, Priority: jobhost.Normal, MaxAttempts: 3, CreatedAt: 1, ReadyAt: record.Millis(i),
				Digest: [16]byte{1}, Payload: payload,
			}}
		}
		done := make(chan error)
		s.Commit(ops, func(_ []record.OpResult, err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkMove moves 100,000 jobs, which are two rows each, into a server that syncs what it acknowledges.
func BenchmarkMove(b *testing.B) {
	const jobs = 100_000
	server := postgres.Start(b, "fsync=on", "full_page_writes=on")
	dir := b.TempDir()
	fillStore(b, dir, jobs, bytes.Repeat([]byte("p"), 256))
	rows := int64(0)
	for b.Loop() {
		m, err := moveRows(b.Context(), b, dir, server.URL(), server.Schema(b))
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range m.Rows {
			rows += n
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

// jobsIn counts the jobs in a schema; -1 = there are no tables.
func jobsIn(t testing.TB, server *postgres.Server, schema string) string {
	t.Helper()
	return server.Query(t, "SELECT count(*) FROM "+schema+".job")[0][0]
}

// TestMoveCut cuts the connections to the database while a store is moved, after more and more bytes in each direction. The
// move goes on by itself, and there is one copy in the end.
func TestMoveCut(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	proxy := postgres.NewProxy(t, server.Address())
	dir := t.TempDir()
	fillStore(t, dir, 300, bytes.Repeat([]byte("payload "), 128))
	for way, most := range map[postgres.Direction]int64{postgres.ToServer: 600_000, postgres.ToClient: 30_000} {
		for cut := int64(500); cut < most; cut += 2*cut + 1 {
			schema := server.Schema(t)
			m, err := moveRows(t.Context(), t, dir, server.URLAt(proxy.Port()), schema, func() { proxy.CutAfter(way, cut) })
			proxy.CutAfter(way, -1)
			if err != nil {
				t.Fatalf("cut after %d bytes in direction %d: %v", cut, way, err)
			}
			if n := jobsIn(t, server, schema); n != "300" || m.Rows["job"] != 300 {
				t.Errorf("cut after %d bytes in direction %d: %s jobs, and %d were reported", cut, way, n, m.Rows["job"])
			}
		}
	}
}

// TestMoveStopped: a move that is given up in its middle leaves nothing, and can be made again.
func TestMoveStopped(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	dir, schema := t.TempDir(), server.Schema(t)
	fillStore(t, dir, 300, nil)
	for after := 1; after < 1000; after += after {
		if _, err := moveRows(newCountdown(t, after), t, dir, server.URL(), schema); !errors.Is(err, context.Canceled) {
			t.Fatalf("given up after %d rows: %v", after, err)
		}
		if n := jobsIn(t, server, schema); n != "0" {
			t.Fatalf("given up after %d rows: %s jobs", after, n)
		}
	}
	if _, err := moveRows(t.Context(), t, dir, server.URL(), schema); err != nil {
		t.Fatal(err)
	}
	if n := jobsIn(t, server, schema); n != "300" {
		t.Errorf("%s jobs", n)
	}
	_, err := moveRows(t.Context(), t, dir, server.URL(), schema)
	if jobhost.CodeOf(err) != jobhost.CodeConflict || !strings.Contains(err.Error(), "there are jobs in the database already") {
		t.Errorf("moved twice: %v", err)
	}
}

// countdown is a context that cancels itself after rows were read under it.
type countdown struct {
	context.Context
	cancel context.CancelFunc
	left   int
}

func newCountdown(t *testing.T, rows int) *countdown {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return &countdown{Context: ctx, cancel: cancel, left: rows}
}

// Err implements [context.Context].
func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		c.cancel()
	}
	return c.Context.Err()
}
