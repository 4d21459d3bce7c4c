// Package crashvfs is an SQLite VFS on a disk that can lose power. It keeps
// what was synced apart from what was only written, so that a test can see what
// a crash at any moment would have left behind, repeatably and without root:
//
//	disk := crashvfs.New(t)
//	disk.Set(crashvfs.Faults{PowerOffAtSync: 7})
//	… open a database with disk.VFS(), use it until it fails …
//	disk = disk.Crash(rng) // what survived
//
// A crash keeps everything that was synced and any subset of the other writes,
// in any order, some of them torn at 512 bytes. Names count too: a file that
// was created or deleted since the directory was synced may or may not exist.
package crashvfs

import (
	"cmp"
	"crypto/rand"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// sector is what a disk writes at once: less is never torn.
const sector = 512

// Faults are failures to inject. Counts begin with [Disk.Set]; 0 = never.
type Faults struct {
	// FailWrite and FailSync make the n-th write or sync fail, once.
	FailWrite, FailSync int
	// PowerOffAtSync cuts the power at the n-th sync, which is not done.
	PowerOffAtSync int
	// FullWrite and FullSync make every n-th write or sync fail for lack of space,
	// as the operating system reports it. After such a sync its data never reaches
	// the disk, unless it is written again.
	FullWrite, FullSync int
	// Full is the error that it reports; 0 = ENOSPC.
	Full syscall.Errno
	// Capacity is how many bytes the files may hold together; 0 = unlimited.
	Capacity int64
}

// Disk is a set of files. Its methods are safe for concurrent use.
type Disk struct {
	t    testing.TB
	name string // of the VFS
	shm  string // file for the shared memory of WAL mode

	mu            sync.Mutex        // protects what follows, and all inodes
	names         map[string]*inode // as programs see them
	durable       map[string]*inode // as of the last sync of the directory
	faults        Faults
	writes, syncs int
	off           bool
}

// inode is a file, independent of its name.
type inode struct {
	data    []byte   // as programs see it
	durable []byte   // as of the last sync
	pending []change // from durable to data

	// Locks: how many shared ones are held, and whether the others are held.
	// wanted keeps new shared ones out while an exclusive one is waited for.
	shared                      int
	reserved, wanted, exclusive bool
}

// change is a write, or a truncation when data is nil.
type change struct {
	at   int64
	data []byte
}

// New returns an empty disk, registered as a VFS until the test ends.
func New(t testing.TB) *Disk {
	t.Helper()
	d := &Disk{
		t: t, name: "crash-" + rand.Text(), shm: filepath.Join(t.TempDir(), "shm"),
		names: make(map[string]*inode), durable: make(map[string]*inode),
	}
	vfs.Register(d.name, d)
	t.Cleanup(d.Discard)
	return d
}

// Discard drops the disk and everything on it before the test ends, for tests
// that use many. It may be called twice.
func (d *Disk) Discard() {
	vfs.Unregister(d.name)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
	d.names, d.durable = nil, nil
}

// VFS returns the name under which SQLite knows the disk.
func (d *Disk) VFS() string { return d.name }

// Set replaces the faults and restarts the counts.
func (d *Disk) Set(f Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults, d.writes, d.syncs = f, 0, 0
}

// Counts returns the numbers of writes and syncs since Set.
func (d *Disk) Counts() (writes, syncs int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes, d.syncs
}

// Used returns how many bytes the files hold.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usedLocked()
}

func (d *Disk) usedLocked() int64 {
	var n int64
	for _, f := range d.names {
		n += int64(len(f.data))
	}
	return n
}

// SyncDir makes the names durable, as an fsync of the directory does.
func (d *Disk) SyncDir(string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.syncLocked(); err != nil {
		return err
	}
	d.durable = maps.Clone(d.names)
	return nil
}

// PowerOff cuts the power now: every later call fails.
func (d *Disk) PowerOff() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
}

// Crash cuts the power, returns a disk with what could have survived, and
// discards this one.
func (d *Disk) Crash(rng *mathrand.Rand) *Disk {
	d.t.Helper()
	after := New(d.t)
	defer d.Discard()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
	survivors := make(map[*inode]*inode)
	for _, name := range d.allNamesLocked() {
		f := d.names[name]
		if old := d.durable[name]; old != f && rng.IntN(2) == 0 {
			f = old
		}
		if f == nil {
			continue
		}
		if survivors[f] == nil {
			data := f.survive(rng)
			survivors[f] = &inode{data: data, durable: append([]byte(nil), data...)}
		}
		after.names[name] = survivors[f]
	}
	after.durable = maps.Clone(after.names)
	return after
}

// allNamesLocked returns the names of both maps, sorted so that everything depends on the seed.
func (d *Disk) allNamesLocked() []string {
	both := maps.Clone(d.names)
	maps.Copy(both, d.durable)
	return sortedKeys(both)
}

// survive returns what may be left of a file: what was synced, and any of the
// other changes in any order.
func (i *inode) survive(rng *mathrand.Rand) []byte {
	data := append([]byte(nil), i.durable...)
	keep := rng.Float64() // sometimes most, sometimes few
	for _, k := range rng.Perm(len(i.pending)) {
		if rng.Float64() > keep {
			continue
		}
		c := i.pending[k]
		if c.data == nil {
			data = resize(data, c.at)
			continue
		}
		torn := rng.IntN(4) == 0
		for off := int64(0); off < int64(len(c.data)); {
			// To the end of the sector, which doesn't begin where the write does.
			n := min(sector-(c.at+off)%sector, int64(len(c.data))-off)
			if !torn || rng.IntN(2) == 0 {
				data = overwrite(data, c.at+off, c.data[off:off+n])
			}
			off += n
		}
	}
	return data
}

// syncLocked counts a sync, which may be the one to fail.
func (d *Disk) syncLocked() error {
	if d.off {
		return sqlite3.IOERR_FSYNC
	}
	d.syncs++
	if d.syncs == d.faults.PowerOffAtSync {
		d.off = true
		return sqlite3.IOERR_FSYNC
	}
	if d.syncs == d.faults.FailSync {
		return sqlite3.IOERR_FSYNC
	}
	if n := d.faults.FullSync; n > 0 && d.syncs%n == 0 {
		return cmp.Or(d.faults.Full, syscall.ENOSPC)
	}
	return nil
}

// writeLocked counts a write that makes a file grow by a number of bytes, which
// may be the one to fail.
func (d *Disk) writeLocked(grow int64) error {
	if d.off {
		return sqlite3.IOERR_WRITE
	}
	d.writes++
	if d.writes == d.faults.FailWrite {
		return sqlite3.IOERR_WRITE
	}
	if n := d.faults.FullWrite; n > 0 && d.writes%n == 0 {
		return &os.PathError{Op: "write", Path: "disk", Err: cmp.Or(d.faults.Full, syscall.ENOSPC)}
	}
	if d.faults.Capacity > 0 && grow > 0 && d.usedLocked()+grow > d.faults.Capacity {
		return sqlite3.FULL
	}
	return nil
}
