package sqlitedb_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// TestLockIsNoLink: a lock file that is a link, in a folder that is another user's, has nothing written to where it leads.
func TestLockIsNoLink(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	write(t, filepath.Join(dir, sqlitedb.FileName), "")
	write(t, other, "of another program")
	if err := os.Symlink(other, filepath.Join(dir, sqlitedb.LockName)); err != nil {
		t.Fatal(err)
	}
	if source, err := sqlitedb.OpenSource(dir, nil); err == nil {
		_ = source.Close()
		t.Error("the folder was opened")
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "of another program" {
		t.Errorf("it is %q now, %v", text, err)
	}
}
