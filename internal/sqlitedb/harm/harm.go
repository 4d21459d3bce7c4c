// Package harm damages databases that are closed, for tests: pages that are not
// what they should be, whose seals don't show it.
package harm

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
)

// Harm changes the last pages of contents. It is given those of two rows, and
// damages that of the first.
type Harm struct {
	Name   string
	do     func(page, other []byte)
	sealed bool // afterwards
}

// Harms leave pages whose seals are right.
func Harms() []Harm {
	return []Harm{
		{"a page of zeros", func(page, _ []byte) { clear(page) }, true},
		{"a page of another row", func(page, other []byte) { copy(page, other) }, true},
	}
}

// Flip is a bit that flips, which a page's seal shows.
func Flip() Harm { return Harm{"a flipped bit", func(page, _ []byte) { page[100] ^= 1 }, false} }

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
	for i, at := range pages {
		page := file[at : at+pageSize]
		h.do(page, file[others[i]:others[i]+pageSize])
		if h.sealed {
			sealed.SealPage(uint32(at/pageSize)+1, page)
		}
	}
	// A disk that rots doesn't change the time of the file.
	info, err := os.Stat(path)
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err == nil {
		err = os.Chtimes(path, time.Time{}, info.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// last returns where the last pages of the contents of rows are that are of one
// letter. Such a page begins with the number of the next one, which is none.
func last(file []byte, letter byte) (pages []int) {
	const some = 500
	for at := 0; at < len(file); at += pageSize {
		page := file[at : at+pageSize]
		if binary.BigEndian.Uint32(page) == 0 && bytes.Count(page[4:4+some], []byte{letter}) == some {
			pages = append(pages, at)
		}
	}
	return pages
}
