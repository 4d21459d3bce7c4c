package sqlitedb_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// A directory keeps its place under another name, and a copy has its own.
func TestPlace(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "a")
	place := func(dir string) string {
		p, err := sqlitedb.Place(dir)
		if err != nil || p == "" {
			t.Fatalf("%q, %v", p, err)
		}
		return p
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	before := place(dir)
	moved := filepath.Join(parent, "b")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(moved)); err != nil {
		t.Fatal(err)
	}
	if place(moved) != before || place(dir) == before {
		t.Errorf("it was at %s, is at %s when it was moved, and a copy is at %s", before, place(moved), place(dir))
	}
	if _, err := sqlitedb.Place(filepath.Join(parent, "none")); err == nil {
		t.Error("what isn't there has a place")
	}
}
