package pgdb_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// table is an image of numbers by key that is a [pgdb.Table].
type table struct{ pgdb.Table[string, int64] }

func newTable(db *pgdb.DB) *table {
	return &table{pgdb.Table[string, int64]{
		DB: db, SQL: "SELECT key, n FROM jobhost.sums WHERE key=ANY($1)",
		Args: func(keys []string) []any { return []any{keys} },
		Scan: func(rows pgx.Rows) (key string, n int64, err error) {
			err = rows.Scan(&key, &n)
			return key, n, err
		},
	}}
}

func (m *table) Flush(b *pgx.Batch) error {
	for c := range m.Changes() {
		b.Queue(m.DB.SQL("INSERT INTO jobhost.sums VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET n=excluded.n"), c.Key, *c.Is)
	}
	return nil
}

// walk adds one to some numbers. It asks for each only once it knows the one before.
type walk struct {
	table *table
	keys  []string
	blind bool // it takes a number that it doesn't know for 0 and goes on
	done  chan error
}

func (w *walk) Size() (ops, bytes int) { return len(w.keys), 0 }

func (w *walk) Apply(tx *pgdb.Tx) error {
	tx.Join(w.table)
	for _, key := range w.keys {
		n := int64(0)
		if row := w.table.Get(tx, key); row != nil {
			n = *row
		}
		if tx.Missed() && !w.blind {
			return nil
		}
		w.table.Put(key, n+1)
	}
	return nil
}

func (w *walk) Done(err error) { w.done <- err }

func keysOf(who, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("walk ", who, " key ", i)
	}
	return keys
}

// TestRounds: changes of one commit ask for their rows in the same rounds, whatever the others lack, and what was found
// not to be there is not asked for again.
func TestRounds(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	h := lead(t, open(t, server.URL(), server.Schema(t), "a"))
	for _, tt := range []struct {
		name  string
		blind bool
		runs  int
	}{{"returning early", false, 4}, {"going on", true, 2}} {
		rows := newTable(h.db)
		all := &several{done: make(chan error, 1)}
		for who := range 20 {
			all.changes = append(all.changes, &walk{table: rows, keys: keysOf(who, 3), blind: tt.blind})
		}
		h.writer.Write(all)
		if err := <-all.done; err != nil || all.runs != tt.runs {
			t.Errorf("%s: the changes were applied %d times, want %d; %v", tt.name, all.runs, tt.runs, err)
		}
	}
	for key, n := range stored(t, h.db) {
		if n != 2 {
			t.Errorf("%s is %d", key, n)
		}
	}
}

// TestWant: rows that are asked for together are read together, also once Direct has begun a transaction.
func TestWant(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	h := lead(t, open(t, server.URL(), server.Schema(t), "a"))
	rows, reads := newTable(h.db), 0
	args := rows.Args
	rows.Args = func(keys []string) []any { reads++; return args(keys) }
	c := &wanting{table: rows, keys: keysOf(0, 50), done: make(chan error, 1)}
	for range 3 {
		h.writer.Write(c)
		if err := <-c.done; err != nil {
			t.Fatal(err)
		}
		c.direct = true
	}
	if reads != 3 {
		t.Errorf("the rows were read %d times: once without a transaction, and once in each", reads)
	}
	for key, n := range stored(t, h.db) {
		if n != 3 {
			t.Errorf("%s is %d", key, n)
		}
	}
}

// wanting adds one to some numbers, and asks for all of them before it gets one.
type wanting struct {
	table  *table
	keys   []string
	direct bool // within a transaction
	done   chan error
}

func (w *wanting) Size() (ops, bytes int) { return len(w.keys), 0 }

func (w *wanting) Apply(tx *pgdb.Tx) error {
	tx.Join(w.table)
	if w.direct && tx.Direct() == nil {
		return nil
	}
	w.table.Want(tx, w.keys)
	for _, key := range w.keys {
		n := int64(0)
		if row := w.table.Get(tx, key); row != nil {
			n = *row
		}
		w.table.Put(key, n+1)
	}
	return nil
}

func (w *wanting) Done(err error) { w.done <- err }

// TestManyRounds: a change that needs many rows, each only known after the one before, is made, and other changes of
// its commit can still fail.
func TestManyRounds(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	h := lead(t, open(t, server.URL(), server.Schema(t), "a"))
	rows := newTable(h.db)
	for range 3 {
		w := &walk{table: rows, keys: keysOf(0, 200), done: make(chan error, 1)}
		h.writer.Write(w)
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		rows.Flushed() // the writer is idle
	}
	got := stored(t, h.db)
	if len(got) != 200 {
		t.Errorf("%d numbers", len(got))
	}
	for key, n := range got {
		if n != 3 {
			t.Errorf("%s is %d", key, n)
		}
	}
	a, b := h.newAdd("x", 1), h.newAdd("y", 2)
	a.fail = fmt.Errorf("no")
	h.writer.Write(a)
	h.writer.Write(b)
	if _, err := a.wait(); err == nil {
		t.Error("a change that fails is made")
	}
	if sum, err := b.wait(); sum != 2 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
}

// TestAskedOnce: a row that many changes of a commit ask for is read once.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	h := lead(t, open(t, server.URL(), server.Schema(t), "a"))
	rows, asked := newTable(h.db), 0
	args := rows.Args
	rows.Args = func(keys []string) []any {
		asked += len(keys)
		return args(keys)
	}
	all := &several{done: make(chan error, 1)}
	for range 50 {
		all.changes = append(all.changes, &walk{table: rows, keys: []string{"a", "b"}})
	}
	h.writer.Write(all)
	if err := <-all.done; err != nil || asked != 2 {
		t.Errorf("2 rows were asked for %d times; %v", asked, err)
	}
	if got := stored(t, h.db); got["a"] != 50 || got["b"] != 50 {
		t.Errorf("got %v", got)
	}
}

// TestCompilesNothing: statements that the planner expects to be long, since it can't know how few rows they are about,
// are not compiled, which would take a second.
func TestCompilesNothing(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	h := lead(t, open(t, server.URL(), server.Schema(t), "a"))
	rows := newTable(h.db)
	rows.SQL = "SELECT key, (current_setting('jit')='off')::int::bigint FROM unnest($1::text[]) AS key"
	for _, direct := range []bool{false, true} {
		w := &wanting{table: rows, keys: keysOf(0, 3), direct: direct, done: make(chan error, 1)}
		h.writer.Write(w)
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
	}
	for key, n := range stored(t, h.db) {
		if n != 2 {
			t.Errorf("%s is %d: it was read with settings by which it may be compiled", key, n)
		}
	}
}
