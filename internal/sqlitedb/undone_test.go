package sqlitedb_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/internal/testing/crashvfs"
)

// sameRun is a disk of the machine that runs the test.
type sameRun struct{ *crashvfs.Disk }

func (sameRun) Boot() [16]byte {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return [16]byte{}
	}
	sum := sha256.Sum256(text)
	return [16]byte(sum[:])
}

// killed returns a directory as a host leaves it that is killed.
func (d sameRun) killed(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	for _, suffix := range []string{"", "-wal", "-witness"} {
		f, _, err := d.Read(filepath.Join(dir, sqlitedb.FileName+suffix))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, sqlitedb.FileName+suffix), string(data))
	}
	return to
}

// A commit that could not be synced is none, also for the witness, when what changes nothing is acknowledged
// after it.
func TestChangeOfNothingAfterAFullDisk(t *testing.T) {
	t.Parallel()
	dir, disk := t.TempDir(), sameRun{crashvfs.New(t)}
	db := setup(t, sqlitedb.Options{Dir: dir, Disk: disk})
	put(t, db, 1, "first")
	writes := 0
	for n := 1; writes == 0 || n <= writes; n++ {
		disk.Set(crashvfs.Faults{FullWrite: n})
		if err := try(db, insert(int64(n+1), strings.Repeat("y", 10000))); err == nil {
			writes = n - 1
			break
		}
		nothing := func(tx *sqlitedb.Tx) error { return tx.Stmt("DELETE FROM note WHERE id=-1").Exec() }
		if err := <-offer(db, sqlitedb.Tried, nothing); err != nil {
			t.Fatal(err)
		}
		if got, err := reopen(t, disk.killed(t, dir), nil); err != nil || got != "first" {
			t.Fatalf("write %d: %.30q, %v", n, got, err)
		}
		disk.Set(crashvfs.Faults{})
		await(t, "room", func() bool { return db.Full() == nil })
	}
	if writes < 6 {
		t.Errorf("%d writes", writes)
	}
}

// What is left in the log of commits that could not be synced, and are longer than those after them, is no
// commit that was lost.
func TestRemainsOfCommitsWithoutRoom(t *testing.T) {
	t.Parallel()
	dir, disk := t.TempDir(), sameRun{crashvfs.New(t)}
	db := setup(t, sqlitedb.Options{Dir: dir, Disk: disk})
	put(t, db, 1, "first")
	reading, end := make(chan struct{}), make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { // so that the log isn't restarted
		_ = db.Read(t.Context(), func(r *sqlitedb.Reader) error {
			n, err := count(r)
			close(reading)
			<-end
			return errors.Join(err, fmt.Errorf("%d", n))
		})
	})
	defer func() { close(end); reader.Wait() }()
	<-reading
	for i, pages := range []int{40, 20} {
		disk.Set(crashvfs.Faults{FullSync: 1})
		if err := try(db, insert(int64(i+2), strings.Repeat("y", pages*4096))); err == nil {
			t.Fatal("there was room")
		}
		disk.Set(crashvfs.Faults{})
		await(t, "room", func() bool { return db.Full() == nil })
	}
	put(t, db, 9, "last")
	if got, err := reopen(t, disk.killed(t, dir), nil); err != nil || got != "first last" {
		t.Errorf("%.30q, %v", got, err)
	}
}
