package sqlitedb_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/ncruces/go-sqlite3"
)

// fill adds so many notes of about 10 kB each, a hundred to a commit, from an id on.
func fill(t testing.TB, db *sqlitedb.DB, from int64, n int) {
	t.Helper()
	for ; n > 0; n -= 100 {
		err := try(db, func(tx *sqlitedb.Tx) error {
			for i := range int64(min(n, 100)) {
				if err := insert(from+i, fmt.Sprintf("%d:%s", from+i, strings.Repeat("x", 10_000)))(tx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		from += 100
	}
}

// notesIn returns how many notes a database holds, each of which must be whole.
func notesIn(t testing.TB, dir string, schemas ...sqlitedb.Schema) (n int64) {
	t.Helper()
	db := setup(t, sqlitedb.Options{Dir: dir, Schemas: schemas})
	defer closeDB(t, db)
	err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
		s := r.Stmt("SELECT id, text FROM note")
		for ; s.Step(); n++ {
			if want := fmt.Sprintf("%d:", s.ColInt(0)); !strings.HasPrefix(s.ColText(1), want) || len(s.ColText(1)) != len(want)+10_000 {
				t.Errorf("note %d is %.40q…", s.ColInt(0), s.ColText(1))
			}
		}
		return s.Done()
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A store that is larger than a page cache is copied whole, wherever its pages
// are: in the log, in the database, or some here and some there.
func TestBackupOfALargeStore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		checkpoint int // pages in the log before it is written back
		closed     bool
	}{
		{"all in the log", 1 << 20, false},
		{"some in the log", 1700, false},
		{"nothing in the log", 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, to, restored := t.TempDir(), filepath.Join(t.TempDir(), "copy"), t.TempDir()
			db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: tt.checkpoint})
			fill(t, db, 1, 1200)
			if tt.closed {
				closeDB(t, db)
			}
			if err := sqlitedb.Backup(t.Context(), dir, to); err != nil {
				t.Fatal(err, "hint:", jobhost.HintOf(err))
			}
			opts := sqlitedb.Options{Dir: restored, Schemas: []sqlitedb.Schema{notes()}}
			if _, err := sqlitedb.Restore(t.Context(), opts, to, false); err != nil {
				t.Fatal(err)
			}
			if n := notesIn(t, restored); n != 1200 {
				t.Errorf("%d notes were restored", n)
			}
			wantOnly(t, to, sqlitedb.FileName)
		})
	}
}

// wantOnly checks that a directory holds nothing but one file, for its owner only.
func wantOnly(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Fatalf("the directory holds %v, %v", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

// The copy that is made before a migration is whole, however large it is and
// however the host before has ended. The jobhost of before opens it, as it is
// and by way of a restore.
func TestCopyBeforeMigration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		notes int
		crash bool
		newer []sqlitedb.Schema
	}{
		{"stopped", 5000, false, []sqlitedb.Schema{later()}},
		{"killed", 1200, true, []sqlitedb.Schema{later()}},
		{"a schema more", 100, false, []sqlitedb.Schema{notes(), {Name: "added", Steps: []string{"CREATE TABLE added(x)"}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: 1700})
			fill(t, db, 1, tt.notes)
			if tt.crash {
				dir = crashed(t, dir)
			} else {
				closeDB(t, db)
			}
			closeDB(t, setup(t, sqlitedb.Options{Dir: dir, Schemas: tt.newer}))
			copies, err := filepath.Glob(filepath.Join(dir, "*.before-*"))
			if err != nil || len(copies) != 1 {
				t.Fatalf("copies: %v, %v", copies, err)
			}
			opened, backup := t.TempDir(), t.TempDir()
			for _, to := range []string{opened, backup} {
				if err := os.Link(copies[0], filepath.Join(to, sqlitedb.FileName)); err != nil {
					t.Fatal(err)
				}
			}
			restored := t.TempDir()
			opts := sqlitedb.Options{Dir: restored, Schemas: []sqlitedb.Schema{notes()}}
			if _, err := sqlitedb.Restore(t.Context(), opts, backup, false); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{restored, opened} {
				if n := notesIn(t, dir, notes()); n != int64(tt.notes) {
					t.Errorf("%d notes are in it", n)
				}
			}
		})
	}
}

// crashed returns a directory with the files of a store as they are now, as a
// process that is killed leaves them.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	left := t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, sqlitedb.FileName) + suffix)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(left, sqlitedb.FileName)+suffix, string(data))
	}
	return left
}

// A backup of a damaged store says that it is the store that is damaged.
func TestBackupOfADamagedStore(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	fill(t, db, 1, 100)
	closeDB(t, db)
	path := filepath.Join(dir, sqlitedb.FileName)
	flip(t, path, 500_000, 3)
	err := sqlitedb.Backup(t.Context(), dir, to)
	if jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(err.Error(), path+" is damaged") || !strings.Contains(jobhost.HintOf(err), "restore a backup") {
		t.Errorf("got %v, hint %q", err, jobhost.HintOf(err))
	}
	if left, _ := os.ReadDir(to); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// A host may be upgraded, taken back to the version before, and upgraded again:
// the copy is always of what there was before the last upgrade. One that failed
// half-way keeps the copy that it began with.
func TestCopyBeforeEachMigration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, sqlitedb.FileName)
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 1, "first")
	closeDB(t, db)
	broken := later()
	broken.Steps[2] = "INSERT INTO nowhere VALUES(1)"
	if _, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{broken}}); err == nil {
		t.Fatal("a step that can't be made was made")
	}
	closeDB(t, setup(t, sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{later()}}))
	before := path + ".before-notes-4"
	if got := textsAt(t, before); got != "first" {
		t.Fatalf("the first copy holds %q", got)
	}
	if err := errors.Join(os.Rename(before, path), os.Remove(path+"-witness")); err != nil {
		t.Fatal(err)
	}
	db = setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 2, "second")
	closeDB(t, db)
	closeDB(t, setup(t, sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{later()}}))
	if got := textsAt(t, before); got != "first second" {
		t.Errorf("the second copy holds %q", got)
	}
}

// textsAt returns what a copy holds, which stays as it is.
func textsAt(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, sqlitedb.FileName), string(data))
	return texts(t, setup(t, sqlitedb.Options{Dir: dir}))
}

// A program that reads the store, as Litestream always does, keeps the log from
// being emptied: what is in it is in the copy before a migration too.
func TestCopyBeforeMigrationBesideAReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir, CheckpointPages: 1 << 20})
	put(t, db, 1, "first")
	dir = crashed(t, dir)
	path := filepath.Join(dir, sqlitedb.FileName)
	reader, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := reader.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		t.Fatal(err)
	}
	if err := reader.Exec("BEGIN; SELECT count(*) FROM note"); err != nil {
		t.Fatal(err)
	}
	closeDB(t, setup(t, sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{later()}}))
	if got := textsAt(t, path+".before-notes-4"); got != "first" {
		t.Errorf("the copy holds %q", got)
	}
}

// The log of a host that was killed is damaged: a backup must not be made without a word.
func TestBackupWithADamagedLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(50) {
		put(t, db, i+1, strings.Repeat("x", 500))
	}
	want := len(texts(t, db))
	after := killed(t, dir)
	write(t, filepath.Join(after, sqlitedb.LockName), "1\n")
	flip(t, filepath.Join(after, sqlitedb.FileName+"-wal"), 32+10*4120+9, 1)
	if _, err := reopen(t, killed(t, after), nil); err == nil {
		t.Fatal("the host starts")
	}
	to := t.TempDir()
	err := sqlitedb.Backup(t.Context(), after, to)
	if err == nil {
		got, err := reopen(t, to, nil)
		t.Fatalf("a backup was made with %d bytes of %d (%v)", len(got), want, err)
	}
	if jobhost.CodeOf(err) != jobhost.CodeUnavailable || jobhost.HintOf(err) == "" {
		t.Errorf("refused with %v", err)
	}
}
