// Package harm damages databases that nobody has open, for tests: what a disk, a
// controller or a file system does to pages whose checksums don't show it.
package harm

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// Harm changes the last pages of contents. It is given those of two rows, and
// damages that of the first.
type Harm struct {
	Name string
	do   func(page, other []byte)
}

// Harms leave pages whose checksums are right: that of zeros has none, and none says
// which page it is of.
func Harms() []Harm {
	return []Harm{
		{"a page of zeros", func(page, _ []byte) { clear(page) }},
		{"a page of another row", func(page, other []byte) { copy(page, other) }},
	}
}

// Flip is a bit that flips, which a page's checksum shows.
func Flip() Harm { return Harm{"a flipped bit", func(page, _ []byte) { page[100] ^= 1 }} }

const pageSize = 4096

// Do damages the rows whose contents are of one letter, with those of another at hand.
// The contents must be a few pages long, and the database closed.
func (h Harm) Do(t testing.TB, dir string, letter, other byte) {
	t.Helper()
	path := filepath.Join(dir, sqlitedb.FileName)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	others := last(file, other)
	pages := last(file, letter)
	if len(pages) == 0 || len(pages) != len(others) {
		t.Fatalf("there are %d pages of %c, and %d of %c", len(pages), letter, len(others), other)
	}
	for i, page := range pages {
		h.do(page, others[i])
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
}

// last returns the last pages of the contents of rows that are of one letter. Such a
// page begins with the number of the next one, which is none.
func last(file []byte, letter byte) (pages [][]byte) {
	const some = 500
	for at := 0; at < len(file); at += pageSize {
		page := file[at : at+pageSize]
		if binary.BigEndian.Uint32(page) == 0 && bytes.Count(page[4:4+some], []byte{letter}) == some {
			pages = append(pages, page)
		}
	}
	return pages
}
