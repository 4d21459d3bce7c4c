package sqlitedb_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// What another program has moved into the database just before the host ends gets its seals, too.
func TestEndAfterAnotherMovedTheLog(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"PASSIVE", "FULL", "RESTART", "TRUNCATE"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, sqlitedb.FileName)
			db := setup(t, sqlitedb.Options{Dir: dir})
			for i := range int64(50) {
				put(t, db, i+1, strings.Repeat("x", 500))
			}
			want := texts(t, db)
			shell3(t, path, "PRAGMA wal_checkpoint("+mode+")")
			closeDB(t, db)
			if err := sqlitedb.Verify(t.Context(), path, nil); err != nil {
				t.Error(err)
			}
			if got, err := reopen(t, dir, nil); err != nil || got != want {
				t.Fatalf("%v, %d bytes of %d", err, len(got), len(want))
			}
		})
	}
}

// A shell that stays open after the host was killed has moved the log, which is still there.
func TestStartBesideAnotherThatMovedTheLog(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"PASSIVE", "FULL", "RESTART", "TRUNCATE"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db := setup(t, sqlitedb.Options{Dir: dir})
			for i := range int64(50) {
				put(t, db, i+1, strings.Repeat("x", 500))
			}
			want := texts(t, db)
			dir = killed(t, dir)
			shell := openSession(t, filepath.Join(dir, sqlitedb.FileName))
			shell.run("PRAGMA wal_checkpoint(" + mode + ")")
			for life := range 3 {
				if got, err := reopen(t, dir, nil); err != nil || got != want {
					t.Fatalf("life %d: %v, %d bytes of %d", life, err, len(got), len(want))
				}
			}
			shell.end()
			if err := sqlitedb.Verify(t.Context(), filepath.Join(dir, sqlitedb.FileName), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// An upgrade after somebody has looked at the store of a host that was killed.
func TestUpgradeAfterAStranger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(50) {
		put(t, db, i+1, strings.Repeat("x", 500))
	}
	dir = killed(t, dir)
	shell3(t, filepath.Join(dir, sqlitedb.FileName), "SELECT count(*) FROM note")
	up, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{later()}})
	if err != nil {
		t.Fatal(err)
	}
	closeDB(t, up)
}

// A backup after somebody has moved the log: of a host that runs, and of one that was killed.
func TestBackupAfterAStranger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(50) {
		put(t, db, i+1, strings.Repeat("x", 500))
	}
	after := killed(t, dir)
	shell3(t, filepath.Join(after, sqlitedb.FileName), "SELECT count(*) FROM note")
	if err := sqlitedb.Backup(t.Context(), after, t.TempDir()); err != nil {
		t.Errorf("killed: %v", err)
	}
	shell3(t, filepath.Join(dir, sqlitedb.FileName), "PRAGMA wal_checkpoint(PASSIVE)")
	if err := sqlitedb.Backup(t.Context(), dir, t.TempDir()); err != nil {
		t.Errorf("running, passive: %v", err)
	}
	shell3(t, filepath.Join(dir, sqlitedb.FileName), "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := sqlitedb.Backup(t.Context(), dir, t.TempDir()); err != nil {
		t.Errorf("running, truncate: %v", err)
	}
}
