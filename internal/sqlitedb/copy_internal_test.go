package sqlitedb

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/ncruces/go-sqlite3"
)

// Whatever goes wrong with a copy, its owner is not advised to put a backup in
// the place of the store, nor reported that the store is damaged.
func TestFaultsOfACopy(t *testing.T) {
	t.Parallel()
	const to = "/backups/jobhost.db.part"
	for _, tt := range []struct {
		name string
		err  error
		code jobhost.Code
		text string
	}{
		{"a checksum", sqlite3.IOERR_DATA, jobhost.CodeUnavailable, "is not what was copied"},
		{"a page", fmt.Errorf("%w: Tree 6 page 6", sqlite3.CORRUPT), jobhost.CodeUnavailable, "is not what was copied"},
		{"a page, found at its opening", explainOpen(to, sqlite3.IOERR_DATA), jobhost.CodeUnavailable, "is not what was copied"},
		{"no room", sqlite3.FULL, jobhost.CodeUnavailable, "the disk is full"},
		{"no room for the system", explainPath(to, syscall.ENOSPC), jobhost.CodeUnavailable, "the disk is full"},
		{"a quota", syscall.EDQUOT, jobhost.CodeUnavailable, "the disk is full"},
		{"the disk", sqlite3.IOERR_WRITE, jobhost.CodeUnavailable, "cannot be made"},
		{"a disk that can't be written", syscall.EROFS, jobhost.CodeDenied, "cannot be made"},
		{"a permission", syscall.EACCES, jobhost.CodeDenied, "cannot be made"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := explainCopy(to, tt.err)
			said := err.Error() + "\n" + jobhost.HintOf(err)
			if jobhost.CodeOf(err) != tt.code || !strings.Contains(said, tt.text) || !strings.Contains(said, to) || !strings.Contains(said, "the store is as it was") {
				t.Errorf("code %s: %s", jobhost.CodeOf(err), said)
			}
			if e, _ := errors.AsType[*jobhost.Error](err); strings.Contains(e.Message+e.Hint, "restore") || strings.Contains(e.Message+e.Hint, "damaged") {
				t.Errorf("it says %q and advises %q", e.Message, e.Hint)
			}
		})
	}
}

// A copy that is slower than those who write gives up instead of letting the
// log fill the disk.
func TestCopyGivesUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := Open(Options{Dir: dir, Schemas: []Schema{{Name: "notes", Steps: []string{"CREATE TABLE note(id)"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := openSource(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	target := filepath.Join(t.TempDir(), FileName)
	err = finish(context.Background(), s, target, func(part string) error { return s.copyTo(t.Context(), part, -1) })
	if jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(err.Error(), "more is written than can be copied") {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(target + "*"); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// A host that is stopped while a copy is made leaves its log to the copy, which
// leaves it to the next host.
func TestHostEndsDuringACopy(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), t.TempDir()
	opts := Options{Dir: dir, Schemas: []Schema{{Name: "notes", Steps: []string{"CREATE TABLE note(id)"}}}}
	db, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openSource(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	db.Write(insertion{done})
	if err := errors.Join(<-done, db.Close()); err != nil {
		t.Fatal(err)
	}
	err = finish(t.Context(), s, filepath.Join(to, FileName), func(part string) error { return s.copyTo(t.Context(), part, copyLog) })
	if err := errors.Join(err, s.close()); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]int64{dir: 1, to: 0} {
		opts.Dir = dir
		db, err := Open(opts)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := db.writer.tx.number("SELECT count(*) FROM note"); n != want || err != nil {
			t.Errorf("%d notes, want %d, %v", n, want, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// insertion is a change that adds a note.
type insertion struct{ done chan error }

func (insertion) Ops() int           { return 1 }
func (insertion) Apply(tx *Tx) error { return tx.Stmt("INSERT INTO note(id) VALUES(1)").Exec() }
func (i insertion) Done(err error)   { i.done <- err }
