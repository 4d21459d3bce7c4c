package pgdb

import (
	"strings"
	"testing"
)

// What a table knows stays within its bounds, what is needed no more is forgotten, and the bytes add up.
func TestTableBounds(t *testing.T) {
	t.Parallel()
	rows := Table[int, string]{
		Bytes: func(s *string) int { return len(*s) },
		Cold:  func(s *string) bool { return *s == "over" },
	}
	bytes := func() (n int) {
		for _, e := range rows.rows {
			n += len(*e.is)
		}
		return n
	}
	long := strings.Repeat("x", maxRowBytes/100)
	for i := range 4 * maxRows {
		row := "short"
		switch {
		case i%3 == 0:
			row = "over"
		case i%1000 == 1:
			row = long
		}
		rows.Put(i, row)
		if i%4 == 0 {
			rows.Put(i/2, "changed")
		}
		if i%2000 == 0 {
			rows.AfterCommit()
			if len(rows.rows) > maxRows || rows.bytes > maxRowBytes || rows.bytes != bytes() {
				t.Fatalf("after %d: %d rows and %d bytes, counted %d", i, len(rows.rows), rows.bytes, bytes())
			}
		}
	}
	rows.AfterCommit()
	if len(rows.rows) == 0 {
		t.Fatal("nothing is known")
	}
	for key, e := range rows.rows {
		if *e.is == "over" {
			t.Fatalf("row %d is known", key)
		}
	}
}

// Commits that fail read rows too, and what is known of them stays within the same bounds, also if none succeeds for long.
func TestTableBoundsWithoutCommits(t *testing.T) {
	t.Parallel()
	rows := Table[int, string]{}
	for i := range 4 * maxRows {
		tx := &Tx{writer: &Writer{}, first: true}
		if rows.Get(tx, i) != nil || !tx.incomplete {
			t.Fatalf("row %d is known", i)
		}
		rows.AfterRollback()
		rows.learn(rows.wanted, nil) // as Read does
		rows.wanted = nil
		tx.first, tx.incomplete = false, false
		if rows.Get(tx, i); tx.incomplete {
			t.Fatalf("row %d is not known after it was read", i)
		}
		rows.Put(i, "new")
		rows.AfterRollback()
		if len(rows.rows) > maxRows+1 {
			t.Fatalf("after %d: %d rows", i, len(rows.rows))
		}
	}
}
