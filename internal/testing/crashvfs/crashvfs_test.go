package crashvfs_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/crashvfs"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

const create = vfs.OPEN_READWRITE | vfs.OPEN_CREATE

// openFile opens a file that is not a database, so that no shared memory is created.
func openFile(t *testing.T, d *crashvfs.Disk, name string) vfs.File {
	t.Helper()
	f, _, err := d.Open(name, create|vfs.OPEN_MAIN_JOURNAL)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t *testing.T, f vfs.File, p []byte, off int64) {
	t.Helper()
	if _, err := f.WriteAt(p, off); err != nil {
		t.Fatal(err)
	}
}

func sync(t *testing.T, f vfs.File) {
	t.Helper()
	if err := f.Sync(vfs.SYNC_FULL); err != nil {
		t.Fatal(err)
	}
}

// read returns a whole file, nil when it is missing.
func read(t *testing.T, d *crashvfs.Disk, name string) []byte {
	t.Helper()
	f, _, err := d.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSyncedSurvives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		d := crashvfs.New(t)
		f := openFile(t, d, "a")
		write(t, f, []byte("one two"), 0)
		if err := f.Truncate(5); err != nil {
			t.Fatal(err)
		}
		write(t, f, []byte("O"), 0)
		sync(t, f)
		if err := d.SyncDir("/"); err != nil {
			t.Fatal(err)
		}
		if got := read(t, d.Crash(rand.New(rand.NewPCG(seed, 0))), "a"); string(got) != "One t" {
			t.Fatalf("seed %d left %q", seed, got)
		}
	}
}

// TestUnsyncedMaySurvive checks that each unsynced write sometimes survives and
// sometimes doesn't, that one is sometimes torn, and never within 512 bytes.
func TestUnsyncedMaySurvive(t *testing.T) {
	t.Parallel()
	const size = 4096
	var none, all, torn, later int
	for seed := range uint64(200) {
		d := crashvfs.New(t)
		f := openFile(t, d, "a")
		write(t, f, make([]byte, 2*size), 0)
		sync(t, f)
		if err := d.SyncDir("/"); err != nil {
			t.Fatal(err)
		}
		write(t, f, bytes.Repeat([]byte("x"), size), 0)
		write(t, f, bytes.Repeat([]byte("y"), size), size)
		got := read(t, d.Crash(rand.New(rand.NewPCG(seed, 0))), "a")
		for off := 0; off < len(got); off += 512 {
			if part := got[off : off+512]; bytes.Count(part, part[:1]) != 512 {
				t.Fatalf("seed %d tore the sector at %d", seed, off)
			}
		}
		switch x, y := bytes.Count(got, []byte("x")), bytes.Count(got, []byte("y")); {
		case x == 0 && y == 0:
			none++
		case x == size && y == size:
			all++
		case x == 0 && y == size:
			later++
		case x%size != 0 || y%size != 0:
			torn++
		}
	}
	if none == 0 || all == 0 || torn == 0 || later == 0 {
		t.Fatalf("of 200 crashes %d left nothing, %d all, %d the later write only, %d a torn one", none, all, later, torn)
	}
}

// TestNames checks that files come and go until the directory is synced.
func TestNames(t *testing.T) {
	t.Parallel()
	created, deleted := map[bool]int{}, map[bool]int{}
	for seed := range uint64(60) {
		d := crashvfs.New(t)
		openFile(t, d, "old")
		if err := d.SyncDir("/"); err != nil {
			t.Fatal(err)
		}
		f := openFile(t, d, "new")
		write(t, f, []byte("x"), 0)
		sync(t, f)
		if err := d.Delete("old", false); err != nil {
			t.Fatal(err)
		}
		after := d.Crash(rand.New(rand.NewPCG(seed, 0)))
		isNew, err := after.Access("new", vfs.ACCESS_EXISTS)
		isOld, errOld := after.Access("old", vfs.ACCESS_EXISTS)
		if err := errors.Join(err, errOld); err != nil {
			t.Fatal(err)
		}
		created[isNew]++
		deleted[isOld]++
	}
	if len(created) != 2 || len(deleted) != 2 {
		t.Fatalf("created files exist %v, deleted files exist %v", created, deleted)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	d := crashvfs.New(t)
	f := openFile(t, d, "a")
	d.Set(crashvfs.Faults{FailWrite: 2, FailSync: 1, Capacity: 10})
	write(t, f, []byte("12345"), 0)
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, sqlite3.IOERR_WRITE) {
		t.Fatalf("second write: %v", err)
	}
	if _, err := f.WriteAt([]byte("123456"), 5); !errors.Is(err, sqlite3.FULL) {
		t.Fatalf("write over the capacity: %v", err)
	}
	write(t, f, []byte("54321"), 0)
	if err := f.Sync(vfs.SYNC_FULL); !errors.Is(err, sqlite3.IOERR_FSYNC) {
		t.Fatalf("first sync: %v", err)
	}
	sync(t, f)
	if writes, syncs := d.Counts(); writes != 4 || syncs != 2 {
		t.Fatalf("counted %d writes and %d syncs", writes, syncs)
	}
	d.Set(crashvfs.Faults{PowerOffAtSync: 1})
	if err := f.Sync(vfs.SYNC_FULL); err == nil {
		t.Fatal("a sync without power")
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); err == nil {
		t.Fatal("a read without power")
	}
	if _, _, err := d.Open("a", create); err == nil {
		t.Fatal("a file was opened without power")
	}
}
