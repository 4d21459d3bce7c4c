package sqlitedb_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
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

// An upgrade after a look at the store of a host that was killed.
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

// A backup after the log was moved: of a host that runs, and of one that was killed.
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

// A host notes that the log is restarted before SQLite does it. If it is killed in between, another program
// still moves the log of before.
func TestStrangerAfterAKillBeforeTheLogBeginsAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(50) {
		put(t, db, i+1, strings.Repeat("x", 900))
	}
	want := texts(t, db)
	after := killed(t, dir)
	path := filepath.Join(after, sqlitedb.FileName)
	patch(t, path+"-witness", beginAnew)
	shell3(t, path, "SELECT count(*) FROM note")
	backup := filepath.Join(t.TempDir(), "backup")
	if err := sqlitedb.Backup(t.Context(), after, backup); err != nil {
		t.Error(err)
	}
	if got, err := reopen(t, after, nil); err != nil || got != want {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
}

// beginAnew makes a witness one that notes another generation of the log.
func beginAnew(b []byte) []byte {
	const slot, generation, used = 512, 8 + 8 + 16, 8 + 8 + 16 + 8 + 8 + 2*24 + 16 + 8 + 1
	turn := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at+8:]) }
	last, other := 0, slot
	if turn(other) > turn(last) {
		last, other = other, last
	}
	next := bytes.Clone(b[last : last+slot])
	binary.LittleEndian.PutUint64(next[8:], turn(last)+1)
	copy(next[generation+8:], next[generation:generation+8])
	next[generation] ^= 1
	binary.LittleEndian.PutUint32(next[used:], crc32.Checksum(next[:used], crc32.MakeTable(crc32.Castagnoli)))
	copy(b[other:], next)
	return b
}
