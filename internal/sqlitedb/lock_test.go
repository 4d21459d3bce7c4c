package sqlitedb_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// Removing the lock file of a host that runs doesn't let its store be opened a second time.
func TestLockFileIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := setup(t, sqlitedb.Options{Dir: dir})
	put(t, db, 1, "one")
	if err := os.Remove(filepath.Join(dir, sqlitedb.LockName)); err != nil {
		t.Fatal(err)
	}
	if _, err := reopen(t, dir, nil); jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Fatalf("a second one: %v", err)
	}
	put(t, db, 2, "two")
	if got := texts(t, db); got != "one two" {
		t.Error(got)
	}
}
