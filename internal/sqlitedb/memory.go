package sqlitedb

import (
	"crypto/rand"
	"io"
	"sync"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// memoryVFS keeps the files of one database in memory. It does no locking:
// [DB] lets either one transaction or any number of reads at the files, see
// DB.gate. SQLite has no WAL on it, and keeps its rollback journal in memory.
type memoryVFS struct {
	name string

	mu    sync.Mutex // protects files
	files map[string]*memoryFile
}

// registerMemory makes an empty VFS under a name of its own.
func registerMemory() *memoryVFS {
	v := &memoryVFS{name: "jobhost-memory-" + rand.Text(), files: make(map[string]*memoryFile)}
	vfs.Register(v.name, v)
	return v
}

func (v *memoryVFS) unregister() { vfs.Unregister(v.name) }

// Open implements [vfs.VFS].
func (v *memoryVFS) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	flags |= vfs.OPEN_MEMORY
	if name == "" {
		return &memoryFile{}, flags, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.files[name]
	if f == nil {
		if flags&vfs.OPEN_CREATE == 0 {
			return nil, flags, sqlite3.CANTOPEN
		}
		f = &memoryFile{}
		v.files[name] = f
	}
	return f, flags, nil
}

// Delete implements [vfs.VFS].
func (v *memoryVFS) Delete(name string, _ bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.files[name] == nil {
		return sqlite3.IOERR_DELETE_NOENT
	}
	delete(v.files, name)
	return nil
}

// Access implements [vfs.VFS].
func (v *memoryVFS) Access(name string, _ vfs.AccessFlag) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.files[name] != nil, nil
}

// FullPathname implements [vfs.VFS].
func (v *memoryVFS) FullPathname(name string) (string, error) { return name, nil }

// chunk is how much a file grows by. Growing never moves what is there.
const chunk = 1 << 20

// memoryFile is a file, shared by all that open it.
type memoryFile struct {
	chunks []*[chunk]byte
	size   int64
}

// Close implements [vfs.File].
func (f *memoryFile) Close() error { return nil }

// ReadAt implements [vfs.File].
func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) && off < f.size {
		c := f.chunks[off/chunk][off%chunk:]
		c = c[:min(int64(len(c)), f.size-off)]
		k := copy(p[n:], c)
		n += k
		off += int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements [vfs.File].
func (f *memoryFile) WriteAt(p []byte, off int64) (int, error) {
	f.grow(off + int64(len(p)))
	for n := 0; n < len(p); {
		k := copy(f.chunks[off/chunk][off%chunk:], p[n:])
		n += k
		off += int64(k)
	}
	return len(p), nil
}

func (f *memoryFile) grow(size int64) {
	for int64(len(f.chunks))*chunk < size {
		f.chunks = append(f.chunks, new([chunk]byte))
	}
	f.size = max(f.size, size)
}

// Truncate implements [vfs.File].
func (f *memoryFile) Truncate(size int64) error {
	if size >= f.size {
		f.grow(size)
		return nil
	}
	keep := (size + chunk - 1) / chunk
	clear(f.chunks[keep:])
	f.chunks = f.chunks[:keep]
	if rest := size % chunk; rest != 0 {
		clear(f.chunks[keep-1][rest:])
	}
	f.size = size
	return nil
}

// Sync implements [vfs.File].
func (f *memoryFile) Sync(vfs.SyncFlag) error { return nil }

// Size implements [vfs.File].
func (f *memoryFile) Size() (int64, error) { return f.size, nil }

// Lock implements [vfs.File].
func (f *memoryFile) Lock(vfs.LockLevel) error { return nil }

// Unlock implements [vfs.File].
func (f *memoryFile) Unlock(vfs.LockLevel) error { return nil }

// CheckReservedLock implements [vfs.File].
func (f *memoryFile) CheckReservedLock() (bool, error) { return false, nil }

// SectorSize implements [vfs.File].
func (f *memoryFile) SectorSize() int { return 4096 }

// DeviceCharacteristics implements [vfs.File].
func (f *memoryFile) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return vfs.IOCAP_ATOMIC | vfs.IOCAP_SEQUENTIAL | vfs.IOCAP_SAFE_APPEND | vfs.IOCAP_POWERSAFE_OVERWRITE
}
