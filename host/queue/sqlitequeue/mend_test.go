package sqlitequeue_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/queue/sqlitequeue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// repaired brings back a store from which rows are gone.
func repaired(t *testing.T, dir string, gone ...string) *sqlitedb.DB {
	t.Helper()
	opts := sqlitedb.Options{Dir: dir, Schemas: sqlitequeue.Schemas()}
	db, err := sqlitedb.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, db, gone...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	opts.Dir = filepath.Join(t.TempDir(), "repaired")
	if _, err := sqlitedb.Repair(t.Context(), dir, opts.Dir, sqlitedb.RepairOptions{Schemas: opts.Schemas}); err != nil {
		t.Fatal(err)
	}
	if db, err = sqlitedb.Open(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// texts returns what statements read, a row a line.
func texts(t *testing.T, db *sqlitedb.DB, statements ...string) string {
	t.Helper()
	var all strings.Builder
	for _, sql := range statements {
		err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
			s := r.Stmt(sql)
			for s.Step() {
				fmt.Fprintln(&all, s.ColText(0))
			}
			return s.Done()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// What follows from rows of jobs, tasks and keys is the same after a repair that has
// found none of it, or half.
func TestMend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := sqlitequeue.Open(sqlitequeue.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ops := []record.Op{&record.ChangeKV{Worker: "w2", Quota: 1 << 20, Changes: []record.KVChange{{Key: "key", Value: []byte("value")}}}}
	for i := range 9 {
		ops = append(ops, &record.Submit{Job: &record.JobSpec{
			ID: fmt.Sprint("job", i), Worker: fmt.Sprint("w", i%3), Tasks: 1 + i%2, CreatedAt: record.Millis(1000 + i),
			Labels: map[string]string{"n": fmt.Sprint(i)}, Ref: fmt.Sprint("one/ref", i),
		}})
	}
	ops = append(ops, &record.Cancel{ID: "job4"})
	results, err := commitAll(store, ops...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commitAll(store, &record.Settle{Key: results[2].Key, Status: record.Succeeded, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	follows := []string{
		"SELECT worker || ' ' || status || ' ' || n FROM counter WHERE n>0 ORDER BY 1",
		"SELECT job || ' ' || open || ' ' || succeeded || ' ' || dead || ' ' || cancelled FROM part ORDER BY 1",
		"SELECT block || ' ' || low || ' ' || high FROM span ORDER BY 1",
		"SELECT name || ' ' || value || ' ' || job FROM label ORDER BY 1", "SELECT ref FROM object ORDER BY 1",
		"SELECT next FROM sequence", "SELECT worker || ' ' || bytes || ' ' || version FROM kv_worker ORDER BY 1", "SELECT id FROM worker ORDER BY 1",
	}
	db := repaired(t, dir)
	want := texts(t, db, follows...)
	if strings.Count(want, "\n") < 25 {
		t.Fatalf("too little follows:\n%s", want)
	}
	for _, share := range []string{"", " WHERE rowid%2"} {
		gone := []string{"DELETE FROM part" + share, "DELETE FROM span" + share, "DELETE FROM sequence" + share, "DELETE FROM kv_worker" + share}
		if share == "" {
			gone = append(gone, "DELETE FROM counter", "DELETE FROM label", "DELETE FROM object")
		} else {
			gone = append(gone, "DELETE FROM counter WHERE worker=1", "UPDATE counter SET n=77 WHERE worker=2", "DELETE FROM worker WHERE id=2")
		}
		if got := texts(t, repaired(t, dir, gone...), follows...); got != want {
			t.Errorf("after %q: got\n%swant\n%s", gone, got, want)
		}
	}
	db = repaired(t, dir, "DELETE FROM job WHERE id IN ('job1', 'job2')")
	if got := texts(t, db, "SELECT sum(n) FROM counter", "SELECT count(*) FROM task", "SELECT count(*) FROM task WHERE job NOT IN (SELECT seq FROM job)"); got != "10\n10\n0\n" {
		t.Errorf("without two jobs of three tasks: %q", got)
	}
}
