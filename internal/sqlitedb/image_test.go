package sqlitedb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// TestImage opens databases as copies of another, which go on by themselves.
func TestImage(t *testing.T) {
	t.Parallel()
	first := setup(t, sqlitedb.Options{})
	put(t, first, 1, "one")
	image := first.Image()
	put(t, first, 2, "two")
	second := setup(t, sqlitedb.Options{Image: image})
	put(t, second, 3, "three")
	third := setup(t, sqlitedb.Options{Image: image})
	for db, want := range map[*sqlitedb.DB]string{first: "one two", second: "one three", third: "one"} {
		if got := texts(t, db); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if setup(t, sqlitedb.Options{Dir: t.TempDir()}).Image() != nil {
		t.Error("there is an image of a database on disk")
	}
}

// TestHammerImage takes images while others write: each is of a moment between two commits.
func TestHammerImage(t *testing.T) {
	t.Parallel()
	db := setup(t, sqlitedb.Options{})
	written := make(chan error, 1)
	go func() {
		var err error
		for i := int64(0); i < 400 && err == nil; i += 2 {
			err = try(db, func(tx *sqlitedb.Tx) error {
				if err := insert(i, strings.Repeat("x", 5000))(tx); err != nil {
					return err
				}
				return insert(i+1, fmt.Sprint(i))(tx)
			})
		}
		written <- err
	}()
	for range 20 {
		if n := len(strings.Fields(texts(t, setup(t, sqlitedb.Options{Image: db.Image()})))); n%2 != 0 {
			t.Errorf("an image has %d rows, half a commit among them", n)
		}
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
