package sqlitedb_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
	"github.com/ncruces/go-sqlite3"
)

// flip changes one bit of a file.
func flip(t *testing.T, path string, at int64, bit uint) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << bit
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// Wherever a bit of the database flips, no answer is wrong: the file is
// refused, or reading it is an error, or the bit was in room that holds nothing.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(200) {
		put(t, db, i+1, strings.Repeat("x", 100))
	}
	want := texts(t, db)
	closeDB(t, db)
	file := filepath.Join(dir, sqlitedb.FileName)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rng, found := rand.New(rand.NewPCG(1, 2)), 0
	for range 20 {
		damaged := t.TempDir()
		path := filepath.Join(damaged, sqlitedb.FileName)
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		at := rng.Int64N(int64(len(whole)))
		flip(t, path, at, uint(rng.IntN(8)))
		db, err := sqlitedb.Open(sqlitedb.Options{Dir: damaged, Schemas: []sqlitedb.Schema{notes()}})
		if err == nil {
			var got string
			if got, err = readTexts(t, db); err == nil && got != want {
				t.Errorf("bit at %d: a wrong answer", at)
			}
			_ = db.Close() // whatever it says
		}
		if err != nil {
			found++
			if jobhost.CodeOf(err) == jobhost.CodeInternal || jobhost.HintOf(err) == "" {
				t.Errorf("bit at %d: %v (code %s)", at, err, jobhost.CodeOf(err))
			}
		}
	}
	if found < 10 {
		t.Errorf("%d of 20 flipped bits were found", found)
	}
}

// A bit that flips in the log would end it for SQLite, and take later commits
// with it. What a loss of power leaves of the last commit is no damage.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	for i := range int64(20) {
		put(t, db, i+1, "note")
	}
	copied := func() string { // as a crash would leave it
		to := t.TempDir()
		for _, suffix := range []string{"", "-wal"} {
			data, err := os.ReadFile(filepath.Join(dir, sqlitedb.FileName+suffix))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(to, sqlitedb.FileName+suffix), string(data))
		}
		return to
	}
	reopen := func(dir string) (string, error) {
		db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}})
		if err != nil {
			return "", err
		}
		defer db.Close()
		return readTexts(t, db)
	}
	want, err := reopen(copied())
	if err != nil || strings.Count(want, "note") != 20 {
		t.Fatalf("undamaged: %q, %v", want, err)
	}
	log := filepath.Join(dir, sqlitedb.FileName+"-wal")
	info, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	middle := copied()
	flip(t, filepath.Join(middle, sqlitedb.FileName+"-wal"), info.Size()/2, 3)
	if _, err := reopen(middle); jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(err.Error(), "damaged") || jobhost.HintOf(err) == "" {
		t.Fatalf("a damaged log: %v", err)
	}
	for _, cut := range []int64{1, 100, 4000, 4096 + 24} { // of the last commit
		torn := copied()
		if err := os.Truncate(filepath.Join(torn, sqlitedb.FileName+"-wal"), info.Size()-cut); err != nil {
			t.Fatal(err)
		}
		if got, err := reopen(torn); err != nil || strings.Count(got, "note") != 19 {
			t.Fatalf("torn by %d: %q, %v", cut, got, err)
		}
	}
}

// A file from before there were checksums gets them, and keeps what it held.
func TestOlderShape(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, sqlitedb.FileName)
	shell(t, path, `CREATE TABLE schema(name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
		INSERT INTO schema VALUES('notes', 1); CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
		INSERT INTO note VALUES(1, 'old'); PRAGMA application_id=0x6a687374; PRAGMA user_version=1`)
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 2, "new")
	if got := texts(t, db); got != "old new" {
		t.Fatalf("the database holds %q", got)
	}
	closeDB(t, db)
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	reserved, err := c.FileControl("main", sqlite3.FCNTL_RESERVE_BYTES)
	if err != nil || reserved != sealed.Bytes {
		t.Fatalf("%v bytes are reserved for checksums, %v", reserved, err)
	}
}

// A loss of power while a database is made may leave a first page that is in parts
// old and new, and no journal. There is nothing in it to lose; a page that
// has something, or that SQLite can put right, is left as it is.
func TestUnfinishedIsMadeAnew(t *testing.T) {
	t.Parallel()
	page := func(change func(b []byte)) []byte {
		b := make([]byte, 4096)
		copy(b, "SQLite format 3\x00\x10\x00\x02\x02\x08")
		b[100], b[4095] = 0x0d, 1 // a leaf without cells, and a wrong checksum
		change(b)
		return b
	}
	for name, tt := range map[string]struct {
		page  []byte
		opens bool
	}{
		"never written": {page(func(b []byte) { clear(b) }), true},
		"torn":          {page(func([]byte) {}), true},
		"with a table":  {page(func(b []byte) { b[104] = 1 }), false},
		"of others":     {page(func(b []byte) { b[20] = 0 }), false},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, sqlitedb.FileName)
		if err := os.WriteFile(path, tt.page, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}})
		if (err == nil) != tt.opens {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			put(t, db, 1, "x")
			closeDB(t, db)
		}
	}
}
