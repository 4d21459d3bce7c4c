package sqlitedb_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// zoo is a schema with every kind of page.
func zoo() sqlitedb.Schema {
	return sqlitedb.Schema{Name: "zoo", Steps: []string{`
		CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
		CREATE TABLE big(id INTEGER PRIMARY KEY, data TEXT NOT NULL);
		CREATE TABLE word(k TEXT PRIMARY KEY, v TEXT NOT NULL) WITHOUT ROWID;
		CREATE INDEX note_text ON note(text)`}}
}

func openZoo(dir string) (*sqlitedb.DB, error) {
	return sqlitedb.Open(sqlitedb.Options{Dir: dir, Schemas: []sqlitedb.Schema{zoo()}})
}

// fillZoo writes rows of all kinds, in several commits, and removes some.
func fillZoo(t *testing.T, db *sqlitedb.DB, from, to int64) {
	t.Helper()
	for i := from; i < to; i++ {
		err := try(db, func(tx *sqlitedb.Tx) error {
			text := fmt.Sprintf("%05d-%s", i*7919%10007, strings.Repeat("n", 150))
			err := tx.Stmt("INSERT INTO note VALUES(?,?)").Int(i).Text(text).Exec()
			if err == nil {
				err = tx.Stmt("INSERT INTO word VALUES(?,?)").Text(text).Text(text[:20]).Exec()
			}
			if err == nil && i%4 == 0 {
				err = tx.Stmt("INSERT INTO big VALUES(?,?)").Int(i).Text(strings.Repeat(fmt.Sprintf("%04d", i), 3500)).Exec()
			}
			if err == nil && i%50 == 0 {
				err = tx.Stmt("UPDATE big SET data=replace(data, '0', 'z') WHERE id=?").Int(i / 25 * 8).Exec()
			}
			if err == nil && i%16 == 8 {
				err = tx.Stmt("DELETE FROM big WHERE id=?").Int(i - 4).Exec()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readZoo reads all rows, and the index.
func readZoo(t *testing.T, db *sqlitedb.DB) (string, error) {
	t.Helper()
	var all strings.Builder
	err := db.Read(t.Context(), func(r *sqlitedb.Reader) error {
		for _, sql := range []string{
			"SELECT id, text FROM note ORDER BY id", "SELECT id, data FROM big ORDER BY id",
			"SELECT k, v FROM word ORDER BY k", "SELECT 1, text FROM note INDEXED BY note_text ORDER BY text",
		} {
			s := r.Stmt(sql)
			for s.Step() {
				all.WriteString(s.ColText(0) + " " + s.ColText(1) + "\n")
			}
			if err := s.Done(); err != nil {
				return err
			}
		}
		return nil
	})
	return all.String(), err
}

const pageSize = 4096

// patch changes a file, but not the time when it was changed, as a disk does that forgets.
func patch(t *testing.T, path string, change func(b []byte) []byte) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.Clone(b)
	if b = change(b); bytes.Equal(b, old) {
		t.Fatal("nothing was changed")
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// Kinds of pages, as the pointer map has them, and the first byte of a page of a tree.
const (
	freePage, firstOverflow, nextOverflow = 2, 3, 4
	tableLeaf, tableInner                 = 0x0d, 0x05
	indexLeaf, indexInner                 = 0x0a, 0x02
)

// pageOf returns a page of a kind: the pointer map's kinds, or the first byte in a tree.
func pageOf(t *testing.T, b []byte, kind byte) int {
	t.Helper()
	const perMap = (pageSize-12)/5 + 1
	last := 0
	for page := 3; page*pageSize <= len(b); page++ {
		n := (page - 2) % perMap
		if n == 0 {
			continue // a page of the pointer map itself
		}
		mapPage := page - n
		entry := b[(mapPage-1)*pageSize+(n-1)*5:]
		first := b[(page-1)*pageSize]
		inTree := entry[0] == 1 || entry[0] == 5
		if kind <= nextOverflow && kind != tableInner && kind != indexInner && entry[0] == kind && !inTree ||
			inTree && first == kind {
			last = page
		}
	}
	if last == 0 {
		t.Fatalf("there is no page of kind %d", kind)
	}
	return last
}

// freeTrunk is the first page of the list of free ones.
func freeTrunk(b []byte) int { return int(binary.BigEndian.Uint32(b[32:])) }

// at returns the bytes of a page.
func at(b []byte, page int) []byte { return b[(page-1)*pageSize : page*pageSize] }

// stores are the directories that are damaged: of a host that was stopped, and of one that was killed.
type stores struct {
	stopped, killed         string
	wantStopped, wantKilled string
	other, earlier          string
}

func (s *stores) file(dir, suffix string) string { return filepath.Join(dir, sqlitedb.FileName+suffix) }
