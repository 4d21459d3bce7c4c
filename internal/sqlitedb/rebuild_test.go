package sqlitedb_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/smalldisk"
	"github.com/ncruces/go-sqlite3"
)

// makeOld makes a store of so many rows of 10 kB as a jobhost made it once: with so many bytes
// for the checksum of a page, which SQLite's VFS writes if they are 8.
func makeOld(t testing.TB, path string, reserved, rows int) {
	t.Helper()
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.FileControl("main", sqlite3.FCNTL_RESERVE_BYTES, reserved)
	err = errors.Join(err, c.Exec(`PRAGMA auto_vacuum=2; PRAGMA application_id=0x6a687374; PRAGMA user_version=1;
		CREATE TABLE schema(name TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
		INSERT INTO schema VALUES('notes', 1); CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL)`))
	for at := 0; at < rows && err == nil; at += 10_000 {
		s, _, prepared := c.Prepare(`WITH RECURSIVE n(i) AS (SELECT ?1+1 UNION ALL SELECT i+1 FROM n WHERE i<?2)
			INSERT INTO note SELECT i, printf('%d:%.*c', i, 10000, 'x') FROM n`)
		if err = prepared; err == nil {
			err = errors.Join(s.BindInt(1, at), s.BindInt(2, min(at+10_000, rows)), s.Exec(), s.Close())
		}
	}
	if err := errors.Join(err, c.Exec("PRAGMA journal_mode=WAL"), c.Close()); err != nil {
		t.Fatal(err)
	}
}

// rowsOfOld counts the rows as the jobhost does that made the store.
func rowsOfOld(t testing.TB, path string, reserved int) (n int64) {
	t.Helper()
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.FileControl("main", sqlite3.FCNTL_RESERVE_BYTES); err != nil || got != reserved {
		t.Errorf("%v bytes of each page are reserved, %v; want %d", got, err, reserved)
	}
	for _, sql := range []string{"PRAGMA integrity_check", "SELECT count(*) FROM note WHERE length(text)>10000"} {
		s, _, err := c.Prepare(sql)
		if err != nil {
			t.Fatal(err)
		}
		if s.Step() {
			n = s.ColumnInt64(0)
			if text := s.ColumnText(0); n == 0 && text != "ok" {
				t.Errorf("%s: %s", sql, text)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// An old store needs room to be rebuilt. Without it, or with too little, it stays as it is to the
// byte, and the jobhost of before opens it; with room it is rebuilt.
func TestRebuildOnAFullDisk(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ reserved, room int }{
		"checksums of 8 bytes":                      {8, 0},
		"checksums of 8 bytes, and too little room": {8, 3 << 20},
		"none":                      {0, 0},
		"none, and too little room": {0, 5 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := smalldisk.New(t, 32<<20)
			path := filepath.Join(dir, sqlitedb.FileName)
			makeOld(t, path, tt.reserved, 700)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "room"), make([]byte, tt.room), 0o600); err != nil {
				t.Fatal(err)
			}
			free := smalldisk.Fill(t, dir)
			if err := os.Remove(filepath.Join(dir, "room")); err != nil {
				t.Fatal(err)
			}
			_, err = sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}})
			e, ok := errors.AsType[*jobhost.Error](err)
			if !ok || e.Code != jobhost.CodeUnavailable || !strings.Contains(e.Message, "the disk is full") || !strings.Contains(e.Hint, "free") {
				t.Fatalf("rebuild without room: %+v", err)
			}
			if tt.room > 0 && (e.Field != jobhost.FieldDisk || !strings.Contains(e.Message, "brought up to date") || !strings.Contains(e.Hint, "MiB")) {
				t.Errorf("rebuild with too little room: %+v", err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
				t.Errorf("the store was changed: %d bytes before, %d after, %v", len(before), len(after), err)
			}
			free()
			if n := rowsOfOld(t, path, tt.reserved); n != 700 {
				t.Errorf("the jobhost of before finds %d rows", n)
			}
			db := setup(t, sqlitedb.Options{Dir: dir})
			if got := strings.Count(texts(t, db), ":x"); got != 700 {
				t.Errorf("rebuilt, it has %d rows", got)
			}
			closeDB(t, db)
		})
	}
}

// BenchmarkRebuild rebuilds a store of 1 GB.
func BenchmarkRebuild(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, sqlitedb.FileName)
	makeOld(b, path, 8, 100_000)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700), os.WriteFile(path, old, 0o600)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		began := time.Now()
		db, err := sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{notes()}})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/1e6/time.Since(began).Seconds(), "MB/s")
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
