package sqlitedb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// change is a [sqlitedb.Change] made of functions.
type change struct {
	ops   int
	apply func(tx *sqlitedb.Tx) error
	done  func(error)
}

func (c change) Ops() int                    { return max(c.ops, 1) }
func (c change) Apply(tx *sqlitedb.Tx) error { return c.apply(tx) }
func (c change) Done(err error)              { c.done(err) }

func insert(id int64, text string) func(tx *sqlitedb.Tx) error {
	return func(tx *sqlitedb.Tx) error {
		return tx.Stmt("INSERT INTO note(id, text) VALUES(?,?)").Int(id).Text(text).Exec()
	}
}

// try writes and waits.
func try(db *sqlitedb.DB, apply func(tx *sqlitedb.Tx) error) error {
	done := make(chan error, 1)
	db.Write(change{apply: apply, done: func(err error) { done <- err }})
	return <-done
}

func put(t testing.TB, db *sqlitedb.DB, id int64, text string) {
	t.Helper()
	if err := try(db, insert(id, text)); err != nil {
		t.Fatal(err)
	}
}

// texts returns all notes in order.
func texts(t testing.TB, db *sqlitedb.DB) string {
	t.Helper()
	var all []string
	err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
		s := r.Stmt("SELECT text FROM note ORDER BY id")
		for s.Step() {
			all = append(all, s.ColText(0))
		}
		return s.Done()
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// stall keeps the writer busy until the function it returns is called, so that
// what is written in between shares a transaction.
func stall(t testing.TB, db *sqlitedb.DB) (proceed func()) {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	db.Write(change{
		apply: func(*sqlitedb.Tx) error {
			once.Do(func() { close(begun) })
			<-end
			return nil
		},
		done: func(error) {},
	})
	<-begun
	return func() { close(end) }
}

func TestGroupCommit(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, opts sqlitedb.Options) {
		var groups []int
		opts.Observer.Commit = func(ops int, _ time.Duration) { groups = append(groups, ops) }
		db := setup(t, opts)
		proceed := stall(t, db)
		var order []int
		done := make(chan struct{})
		for i := range 100 {
			db.Write(change{apply: insert(int64(i), "x"), done: func(err error) {
				if err != nil {
					t.Error(err)
				}
				if order = append(order, i); i == 99 {
					close(done)
				}
			}})
		}
		proceed()
		<-done
		closeDB(t, db)
		for i, got := range order {
			if i != got {
				t.Fatalf("told in order %v", order)
			}
		}
		if fmt.Sprint(groups) != "[1 100]" {
			t.Fatalf("transactions of %v operations, want one of 100 after the first", groups)
		}
	})
}

func TestOnlyTheCulpritFails(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, opts sqlitedb.Options) {
		db := setup(t, opts)
		put(t, db, 5, "first")
		proceed := stall(t, db)
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			apply := insert(int64(i), fmt.Sprint(i)) // 5 is taken
			if i == 2 {
				apply = func(tx *sqlitedb.Tx) error {
					if err := insert(100, "half")(tx); err != nil {
						return err
					}
					panic("boom")
				}
			}
			wg.Add(1)
			db.Write(change{apply: apply, done: func(err error) { errs[i] = err; wg.Done() }})
		}
		proceed()
		wg.Wait()
		for i, err := range errs {
			if bad := i == 2 || i == 5; bad != (jobhost.CodeOf(err) == jobhost.CodeInternal) {
				t.Errorf("change %d: %v", i, err)
			}
		}
		if !strings.Contains(errs[2].Error(), "boom") {
			t.Errorf("the panic is not named: %v", errs[2])
		}
		if got := texts(t, db); got != "0 1 3 4 first 6 7" {
			t.Fatalf("the database holds %q", got)
		}
		if db.Err() != nil {
			t.Fatalf("the database stopped: %v", db.Err())
		}
	})
}

// TestBounded fills the queue: Write waits, and goes on when there is room.
func TestBounded(t *testing.T) {
	t.Parallel()
	db := setup(t, sqlitedb.Options{})
	proceed := stall(t, db)
	const changes, ops = 100, 200
	var queued, told atomic.Int64
	all := make(chan struct{})
	go func() {
		for i := range int64(changes) {
			db.Write(change{ops: ops, apply: insert(i, "x"), done: func(error) {
				if told.Add(1) == changes {
					close(all)
				}
			}})
			queued.Add(1)
		}
	}()
	for queued.Load() < 8192/ops { // as far as it gets
		select {
		case <-t.Context().Done():
			t.Fatal("the queue is smaller than it should be")
		default:
		}
	}
	if n := queued.Load(); n > 8192/ops+1 {
		t.Fatalf("%d operations are queued", n*ops)
	}
	proceed()
	<-all
}

func TestClose(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, opts sqlitedb.Options) {
		db := setup(t, opts)
		proceed := stall(t, db)
		var told atomic.Int64
		for i := range 10 {
			db.Write(change{apply: insert(int64(i), "x"), done: func(err error) {
				if err == nil {
					told.Add(1)
				}
			}})
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		proceed()
		wg.Wait()
		if told.Load() != 10 {
			t.Fatalf("%d of 10 queued changes were made", told.Load())
		}
		if err := try(db, insert(100, "late")); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
			t.Fatalf("write after close: %v", err)
		}
		err := db.Read(t.Context(), func(*sqlitedb.Reader) error { return nil })
		if jobhost.CodeOf(err) != jobhost.CodeUnavailable {
			t.Fatalf("read after close: %v", err)
		}
	})
}

// member counts what a transaction tells it.
type member struct{ before, after, rolledBack int }

func (m *member) BeforeCommit(tx *sqlitedb.Tx) error {
	m.before++
	return insert(int64(1000+m.before), "sum")(tx)
}
func (m *member) AfterCommit()   { m.after++ }
func (m *member) AfterRollback() { m.rolledBack++ }

func TestMember(t *testing.T) {
	t.Parallel()
	db := setup(t, sqlitedb.Options{})
	m := &member{}
	join := func(apply func(*sqlitedb.Tx) error) func(*sqlitedb.Tx) error {
		return func(tx *sqlitedb.Tx) error {
			tx.Join(m)
			return apply(tx)
		}
	}
	proceed := stall(t, db)
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Add(1)
		db.Write(change{apply: join(insert(int64(i), "x")), done: func(error) { wg.Done() }})
	}
	proceed()
	wg.Wait()
	if *m != (member{before: 1, after: 1}) {
		t.Fatalf("after one transaction: %+v", *m)
	}
	if err := try(db, join(func(*sqlitedb.Tx) error { return errors.New("no") })); err == nil {
		t.Fatal("no error")
	}
	put(t, db, 50, "unrelated")
	if *m != (member{before: 1, after: 1, rolledBack: 1}) {
		t.Fatalf("after a rollback: %+v", *m)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, opts sqlitedb.Options) {
		db := setup(t, opts)
		put(t, db, 1, "one")
		err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
			return r.Stmt("DELETE FROM note").Exec()
		})
		if err == nil {
			t.Fatal("a reader can write")
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = db.Read(ctx, func(r *sqlitedb.Reader) error {
			s := r.Stmt("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n")
			for s.Step() {
				if s.ColInt(0) == 10 {
					cancel()
				}
			}
			return s.Done()
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("an endless read ended with %v", err)
		}
		// A statement that was left half-way, and a panic, cost nothing.
		for i := range 10 {
			func() {
				defer func() { _ = recover() }()
				_ = db.Read(t.Context(), func(r *sqlitedb.Reader) error {
					r.Stmt("SELECT id FROM note").Step()
					if i%2 == 0 {
						panic("boom")
					}
					return nil
				})
			}()
		}
		put(t, db, 2, "two")
		if got := texts(t, db); got != "one two" {
			t.Fatalf("the database holds %q", got)
		}
	})
}

// TestHammer reads and writes at once; each reader must see what was told, and
// within one read always the same.
func TestHammer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, opts sqlitedb.Options) {
		opts.CheckpointPages = 5
		db := setup(t, opts)
		var told atomic.Int64
		var wg sync.WaitGroup
		for w := range int64(4) {
			wg.Go(func() {
				for i := range int64(50) {
					if err := try(db, insert(w*1000+i, strings.Repeat("x", 200))); err != nil {
						t.Error(err)
						return
					}
					told.Add(1)
				}
			})
			wg.Go(func() {
				for told.Load() < 200 && !t.Failed() {
					least := told.Load()
					err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
						first, err := count(r)
						if err != nil {
							return err
						}
						second, err := count(r)
						if err == nil && (first < least || first != second) {
							err = fmt.Errorf("counted %d, then %d of at least %d", first, second, least)
						}
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

func count(q sqlitedb.Querier) (int64, error) {
	s := q.Stmt("SELECT count(*) FROM note")
	var n int64
	if s.Step() {
		n = s.ColInt(0)
	}
	return n, s.Done()
}

// TestLogStaysShort hardly ever leaves a moment without a reader: the
// write-ahead log must not grow for ever all the same.
func TestLogStaysShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: 8, Readers: 4})
	put(t, db, 0, "x")
	end := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
					if _, err := count(r); err != nil { // takes the snapshot
						return err
					}
					return r.Stmt(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 2000)
						SELECT max(i) FROM n`).Exec()
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range int64(600) {
		put(t, db, i+1, strings.Repeat("x", 3000))
	}
	close(end)
	wg.Wait()
	info, err := os.Stat(filepath.Join(dir, sqlitedb.FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(2 * 8 * 16 * 4200); info.Size() > most {
		t.Fatalf("the log has %d bytes, more than %d", info.Size(), most)
	}
}
