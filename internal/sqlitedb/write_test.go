package sqlitedb_test

import (
	"errors"
	"fmt"
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
	all, err := readTexts(t, db)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func readTexts(t testing.TB, db *sqlitedb.DB) (string, error) {
	var all []string
	err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
		s := r.Stmt("SELECT text FROM note ORDER BY id")
		for s.Step() {
			all = append(all, s.ColText(0))
		}
		return s.Done()
	})
	return strings.Join(all, " "), err
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

// member counts how a transaction notifies it.
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
