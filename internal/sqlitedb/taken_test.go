package sqlitedb_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// What another store has left in a folder would join a backup, or what was repaired.
func TestPartsOfAStoreAreNotJoined(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 1, "x")
	closeDB(t, db)
	for what, make := range map[string]func(to string) error{
		"backup": func(to string) error { return sqlitedb.Backup(t.Context(), dir, to) },
		"repair": func(to string) error {
			_, err := sqlitedb.Repair(t.Context(), dir, to, sqlitedb.RepairOptions{Schemas: []sqlitedb.Schema{notes()}})
			return err
		},
	} {
		for _, suffix := range []string{"", "-wal", "-journal", "-witness"} {
			to := t.TempDir()
			path := filepath.Join(to, sqlitedb.FileName+suffix)
			write(t, path, "of another")
			if err := make(to); jobhost.CodeOf(err) != jobhost.CodeConflict || !strings.Contains(err.Error(), path) || jobhost.HintOf(err) == "" {
				t.Errorf("%s beside %s: %v", what, path, err)
			}
		}
		if err := make(t.TempDir()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A backup of a stopped host whose log is gone would be one without its last commits.
func TestBackupWithoutTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(50) {
		put(t, db, i+1, strings.Repeat("x", 500))
	}
	for name, empty := range map[string]bool{"deleted": false, "emptied": true} {
		gone := killed(t, dir)
		write(t, filepath.Join(gone, sqlitedb.LockName), "")
		if err := sqlitedb.Backup(t.Context(), gone, t.TempDir()); err != nil {
			t.Fatalf("with its log: %v", err)
		}
		log := filepath.Join(gone, sqlitedb.FileName+"-wal")
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
		if empty {
			write(t, log, "")
		}
		err := sqlitedb.Backup(t.Context(), gone, t.TempDir())
		if jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(err.Error(), "is gone") {
			t.Errorf("%s: %v", name, err)
		}
	}
	closeDB(t, db)
	if err := sqlitedb.Backup(t.Context(), dir, t.TempDir()); err != nil {
		t.Errorf("after a clean end: %v", err)
	}
}

// The rows of a store can be checked while a host runs, whose log another program has moved.
func TestCheckRowsOfALiveStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, sqlitedb.FileName)
	looked := 0
	schema := notes()
	schema.Check = func(q sqlitedb.Querier, _ func(error)) error {
		s := q.Stmt("SELECT length(text) FROM note")
		for s.Step() {
			looked++
		}
		return s.Done()
	}
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(50) {
		put(t, db, i+1, strings.Repeat("x", 500))
	}
	shell3(t, path, "PRAGMA wal_checkpoint(PASSIVE)")
	if err := sqlitedb.CheckRows(t.Context(), path, []sqlitedb.Schema{schema}, func(err error) { t.Error(err) }); err != nil || looked != 50 {
		t.Errorf("looked at %d rows, %v", looked, err)
	}
	put(t, db, 51, "z")
}
