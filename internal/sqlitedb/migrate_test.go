package sqlitedb_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
)

// later is the schema of notes three steps on.
func later() sqlitedb.Schema {
	s := notes()
	s.Steps = append(s.Steps,
		"ALTER TABLE note ADD COLUMN done INTEGER NOT NULL DEFAULT 0; CREATE TABLE tag(name TEXT)",
		"INSERT INTO tag(name) SELECT text FROM note; UPDATE note SET done=1",
		"CREATE INDEX note_text ON note(text)")
	return s
}

// version returns the version of notes, and checks that exactly its steps were made.
func version(t *testing.T, db *sqlitedb.DB) int64 {
	t.Helper()
	var v int64
	err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
		s := r.Stmt("SELECT version, (SELECT count(*) FROM sqlite_schema WHERE name IN ('tag','note_text')) FROM schema WHERE name='notes'")
		if s.Step() {
			v = s.ColInt(0)
			if have, want := s.ColInt(1), []int64{0, 0, 1, 1, 2}[v]; have != want {
				t.Errorf("version %d has %d of its tables and indexes, want %d", v, have, want)
			}
		}
		return s.Done()
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 1, "old")
	closeDB(t, db)

	// Another package's schema in the same file has a version of its own.
	other := sqlitedb.Schema{Name: "it's another", Steps: []string{"CREATE TABLE other(x)", "CREATE TABLE another(x)"}}
	db = setup(t, sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{later(), other}})
	put(t, db, 2, "new")
	if v := version(t, db); v != 4 {
		t.Fatalf("version %d, want 4", v)
	}
	closeDB(t, db)

	backups, err := filepath.Glob(filepath.Join(dir, "*.before-*"))
	if err != nil || len(backups) != 1 || !strings.HasSuffix(backups[0], ".before-notes-4") {
		t.Fatalf("backups %v, %v", backups, err)
	}
	restored := t.TempDir()
	if err := os.Rename(backups[0], filepath.Join(restored, sqlitedb.FileName)); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, setup(t, sqlitedb.Options{Dir: restored})); got != "old" {
		t.Fatalf("the backup holds %q", got)
	}
}

// TestMigrateFails breaks a step: those before it stay, and the next try goes
// on from there.
func TestMigrateFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := later()
	broken.Steps[2] = "INSERT INTO tag(name) VALUES('half'); INSERT INTO nowhere VALUES(1)"
	_, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{broken}})
	if err == nil || !strings.Contains(err.Error(), "migrate notes to version 3") {
		t.Fatalf("got %v", err)
	}
	two := later()
	two.Steps = two.Steps[:2]
	db := setup(t, sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{two}})
	if v := version(t, db); v != 2 {
		t.Fatalf("version %d, want 2", v)
	}
	closeDB(t, db)
	db = setup(t, sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{later()}})
	if v := version(t, db); v != 4 {
		t.Fatalf("version %d, want 4", v)
	}
}

// TestPowerLossDuringMigration loses power at each sync of a migration: the
// file is at one version or another, never between, and nothing is lost.
func TestPowerLossDuringMigration(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 12; n++ {
		disk, dir := crashvfs.New(t), t.TempDir()
		open := func(s sqlitedb.Schema) (*sqlitedb.DB, error) {
			return sqlitedb.Open(sqlitedb.Options{Dir: dir, Disk: disk, Readers: 1, Schemas: []sqlitedb.Schema{s}})
		}
		db, err := open(notes())
		if err != nil {
			t.Fatal(err)
		}
		put(t, db, 1, "one")
		closeDB(t, db)
		disk.Set(crashvfs.Faults{PowerOffAtSync: n})
		if db, err := open(later()); err == nil {
			_ = db.Close() // without power
		}
		disk = disk.Crash(rand.New(rand.NewPCG(uint64(n), 1)))
		db, err = open(later())
		if err != nil {
			t.Fatalf("power loss at sync %d: %v", n, err)
		}
		if v := version(t, db); v != 4 {
			t.Errorf("power loss at sync %d: version %d", n, v)
		}
		if got := texts(t, db); got != "one" {
			t.Errorf("power loss at sync %d: the database holds %q", n, got)
		}
		closeDB(t, db)
	}
}

// A file with a part that a newer jobhost wrote is refused as it is: not even
// its shape is changed.
func TestNewerFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, sqlitedb.FileName)
	shell(t, path, `CREATE TABLE schema(name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
		INSERT INTO schema VALUES('notes', 99); PRAGMA application_id=0x6a687374; PRAGMA user_version=1`)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}})
	if jobhost.CodeOf(err) != jobhost.CodeInvalid || !strings.Contains(err.Error(), "newer jobhost") {
		t.Errorf("got %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed, %v", err)
	}
}
