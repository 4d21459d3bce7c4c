package sqlitedb

import (
	"os"
	"path/filepath"
	"testing"
)

// exchanged is a schema with one table.
func exchanged() []Schema {
	return []Schema{{Name: "notes", Steps: []string{"CREATE TABLE note(id INTEGER PRIMARY KEY)"}}}
}

// A host that starts after a restore was killed, between any two of its steps, has all that was
// there, or is refused.
func TestKilledWhileAStoreIsReplaced(t *testing.T) {
	t.Parallel()
	for _, withLog := range []bool{true, false} {
		for n := range 7 {
			dir, path := t.TempDir(), ""
			path = filepath.Join(dir, FileName)
			db, err := Open(Options{Dir: dir, Schemas: exchanged()})
			if err != nil {
				t.Fatal(err)
			}
			if err := Backup(t.Context(), dir, filepath.Join(dir, "backup")); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			db.Write(insertion{done})
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if withLog {
				keepOnClose(db.writer.tx.conn)
				db.writer.failure = os.ErrClosed // as if it were killed
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			steps := exchange(path, path+".kept", filepath.Join(dir, "backup", FileName))
			if len(steps) != 6 {
				t.Fatalf("%d steps", len(steps))
			}
			for _, step := range steps[:n] {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			rows, err := rowsAfter(t, dir)
			if want := int64(1); err == nil && n < len(steps) && rows != want {
				t.Errorf("log %v, after %d steps: %d rows", withLog, n, rows)
			}
			if n == 0 && err != nil || n == len(steps) && (err != nil || rows != 0) {
				t.Errorf("log %v, after %d steps: %d rows, %v", withLog, n, rows, err)
			}
		}
	}
}

func rowsAfter(t *testing.T, dir string) (n int64, err error) {
	db, err := Open(Options{Dir: dir, Schemas: exchanged()})
	if err != nil {
		return 0, err
	}
	err = db.Read(t.Context(), func(r *Reader) error {
		n, err = r.number("SELECT count(*) FROM note")
		return err
	})
	if errClose := db.Close(); err == nil {
		err = errClose
	}
	return n, err
}
