package crashvfs

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"slices"
	"syscall"

	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

func sortedKeys(m map[string]*inode) []string { return slices.Sorted(maps.Keys(m)) }

// resize returns data cut or filled with zeros to size.
func resize(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data[:size:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}

// overwrite returns data with p at off.
func overwrite(data []byte, off int64, p []byte) []byte {
	if end := off + int64(len(p)); end > int64(len(data)) {
		data = resize(data, end)
	}
	copy(data[off:], p)
	return data
}

// Open implements [vfs.VFS].
func (d *Disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off {
		return nil, flags, sqlite3.IOERR
	}
	if name == "" {
		return &file{disk: d, inode: &inode{}}, flags, nil // temporary
	}
	f := d.names[name]
	if f == nil {
		if flags&vfs.OPEN_CREATE == 0 {
			return nil, flags, sqlite3.CANTOPEN
		}
		f = &inode{}
		d.names[name] = f
	}
	return &file{disk: d, inode: f, shm: vfs.NewSharedMemory(d.shm, flags)}, flags, nil
}

// Delete implements [vfs.VFS].
func (d *Disk) Delete(name string, syncDir bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off {
		return sqlite3.IOERR_DELETE
	}
	if d.names[name] == nil {
		return sqlite3.IOERR_DELETE_NOENT
	}
	delete(d.names, name)
	if !syncDir {
		return nil
	}
	if err := d.syncLocked(); err != nil {
		return err
	}
	d.durable = maps.Clone(d.names)
	return nil
}

// Read opens the current content of a file for reading, and returns its size; a
// missing file is empty.
func (d *Disk) Read(path string) (io.ReadCloser, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off {
		return nil, 0, sqlite3.IOERR_READ
	}
	var data []byte
	if f := d.names[path]; f != nil {
		data = bytes.Clone(f.data)
	}
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
}

// Remove removes a file; a missing one is not an error.
func (d *Disk) Remove(path string) error {
	if err := d.Delete(path, false); !errors.Is(err, sqlite3.IOERR_DELETE_NOENT) {
		return err
	}
	return nil
}

// OpenFile opens a file for reading and writing, as a program without SQLite
// does, creating it if it is missing.
func (d *Disk) OpenFile(path string) (sealed.Storage, error) {
	f, _, err := d.Open(path, vfs.OPEN_READWRITE|vfs.OPEN_CREATE|vfs.OPEN_MAIN_JOURNAL)
	if err != nil {
		return nil, err
	}
	return storage{f}, nil
}

// OpenWitness is OpenFile for a file that is not essential to a store: operations on it are not
// counted, and don't fail.
func (d *Disk) OpenWitness(path string) (sealed.Storage, error) {
	f, _, err := d.Open(path, vfs.OPEN_READWRITE|vfs.OPEN_CREATE|vfs.OPEN_MAIN_JOURNAL)
	if err != nil {
		return nil, err
	}
	return witness{f.(*file)}, nil
}

// witness is a file whose writes and syncs fail only without power.
type witness struct{ *file }

// WriteAt implements [io.WriterAt].
func (w witness) WriteAt(p []byte, off int64) (int, error) {
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	if w.disk.off {
		return 0, sqlite3.IOERR_WRITE
	}
	w.inode.write(p, off)
	return len(p), nil
}

// Sync makes durable what was written.
func (w witness) Sync() error {
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	if w.disk.off {
		return sqlite3.IOERR_FSYNC
	}
	w.inode.sync()
	return nil
}

func (i *inode) write(p []byte, off int64) {
	p = bytes.Clone(p)
	i.data = overwrite(i.data, off, p)
	i.pending = append(i.pending, change{off, p})
}

func (i *inode) sync() {
	for _, c := range i.pending {
		if c.data == nil {
			i.durable = resize(i.durable, c.at)
		} else {
			i.durable = overwrite(i.durable, c.at, c.data)
		}
	}
	i.pending = nil
}

// storage is a file of a program.
type storage struct{ vfs.File }

// Sync makes durable what was written.
func (s storage) Sync() error { return s.File.Sync(vfs.SYNC_FULL) }

// Stamp returns nothing: the disk has no clock.
func (d *Disk) Stamp(string) (sealed.Stamp, error) { return sealed.Stamp{}, nil }

// Boot differs for the disk that a crash leaves.
func (d *Disk) Boot() [16]byte {
	sum := sha256.Sum256([]byte(d.name))
	return [16]byte(sum[:])
}

// Access implements [vfs.VFS].
func (d *Disk) Access(name string, _ vfs.AccessFlag) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off {
		return false, sqlite3.IOERR_ACCESS
	}
	return d.names[name] != nil, nil
}

// FullPathname implements [vfs.VFS].
func (d *Disk) FullPathname(name string) (string, error) { return name, nil }

// file is an open file.
type file struct {
	disk  *Disk
	inode *inode
	shm   vfs.SharedMemory
	level vfs.LockLevel // protected by disk.mu
}

// SharedMemory implements [vfs.FileSharedMemory].
func (f *file) SharedMemory() vfs.SharedMemory { return f.shm }

// Close implements [vfs.File].
func (f *file) Close() error {
	if f.shm != nil {
		_ = f.shm.Close()
	}
	return f.Unlock(vfs.LOCK_NONE)
}

// ReadAt implements [vfs.File].
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.off {
		return 0, sqlite3.IOERR_READ
	}
	if off >= int64(len(f.inode.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.inode.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements [vfs.File].
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.writeLocked(off + int64(len(p)) - int64(len(f.inode.data))); err != nil {
		return 0, err
	}
	f.inode.write(p, off)
	return len(p), nil
}

// Truncate implements [vfs.File].
func (f *file) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.writeLocked(size - int64(len(f.inode.data))); err != nil {
		return err
	}
	f.inode.data = resize(f.inode.data, size)
	f.inode.pending = append(f.inode.pending, change{size, nil})
	return nil
}

// Sync implements [vfs.File].
func (f *file) Sync(vfs.SyncFlag) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.syncLocked(); err != nil {
		if _, full := errors.AsType[syscall.Errno](err); full {
			// What could not be written is no longer pending: programs see it, and
			// no later sync brings it to the disk.
			f.inode.pending = nil
		}
		return err
	}
	f.inode.sync()
	return nil
}

// Size implements [vfs.File].
func (f *file) Size() (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return int64(len(f.inode.data)), nil
}

// Lock implements [vfs.File], as SQLite describes the levels.
func (f *file) Lock(level vfs.LockLevel) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	i := f.inode
	switch {
	case f.level >= level:
		return nil
	case level == vfs.LOCK_SHARED:
		if i.wanted || i.exclusive {
			return sqlite3.BUSY
		}
		i.shared++
	case level == vfs.LOCK_RESERVED:
		if i.reserved {
			return sqlite3.BUSY
		}
		i.reserved = true
	case level == vfs.LOCK_EXCLUSIVE:
		if i.wanted && f.level < vfs.LOCK_PENDING {
			return sqlite3.BUSY
		}
		i.wanted = true
		f.level = vfs.LOCK_PENDING
		if i.shared > 1 {
			return sqlite3.BUSY
		}
		i.exclusive = true
	}
	f.level = level
	return nil
}

// Unlock implements [vfs.File].
func (f *file) Unlock(level vfs.LockLevel) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	i := f.inode
	if f.level <= level {
		return nil
	}
	if f.level >= vfs.LOCK_PENDING {
		i.wanted, i.exclusive = false, false
	}
	if f.level >= vfs.LOCK_RESERVED {
		i.reserved = false
	}
	if level == vfs.LOCK_NONE {
		i.shared--
	}
	f.level = level
	return nil
}

// CheckReservedLock implements [vfs.File].
func (f *file) CheckReservedLock() (bool, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.inode.reserved, nil
}

// SectorSize implements [vfs.File], with the value of the system's VFS.
func (f *file) SectorSize() int { return 4096 }

// DeviceCharacteristics implements [vfs.File], with the value of the system's
// VFS: a write never affects adjacent bytes.
func (f *file) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return vfs.IOCAP_POWERSAFE_OVERWRITE | vfs.IOCAP_SUBPAGE_READ
}
