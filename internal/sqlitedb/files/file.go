package files

import (
	"fmt"

	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// File is a file of a database: itself, its log, its journal, or a temporary one.
// What the base's files can do beyond [vfs.File] it can do too.
type File struct {
	vfs.File
	faults *faults
}

var (
	_ vfs.FileUnwrap             = (*File)(nil)
	_ vfs.FileLockState          = (*File)(nil)
	_ vfs.FileHasMoved           = (*File)(nil)
	_ vfs.FileSizeHint           = (*File)(nil)
	_ vfs.FilePersistWAL         = (*File)(nil)
	_ vfs.FilePowersafeOverwrite = (*File)(nil)
	_ vfs.FileBatchAtomicWrite   = (*File)(nil) // on F2FS
	_ vfs.FileSharedMemory       = (*File)(nil)
	_ vfs.FileMemoryMapper       = (*File)(nil)
)

// WriteAt implements [vfs.File].
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	if err != nil {
		err = f.fault(err)
	}
	return n, err
}

// Truncate implements [vfs.File].
func (f *File) Truncate(size int64) error { return f.fault(f.File.Truncate(size)) }

// Sync implements [vfs.File].
func (f *File) Sync(flags vfs.SyncFlag) error {
	err := f.File.Sync(flags)
	if err == nil {
		return nil
	}
	f.faults.note(fmt.Errorf("%w: %w", ErrSync, err))
	return withCode(err)
}

// fault notes an error of writing and returns it with its code.
func (f *File) fault(err error) error {
	if err == nil {
		return nil
	}
	f.faults.note(err)
	return withCode(err)
}

// SizeHint implements [vfs.FileSizeHint]. SQLite passes over its error, since the
// write that follows meets the same one; so it isn't noted.
func (f *File) SizeHint(size int64) error { return withCode(vfsutil.WrapSizeHint(f.File, size)) }

// CommitAtomicWrite implements [vfs.FileBatchAtomicWrite].
func (f *File) CommitAtomicWrite() error { return f.fault(vfsutil.WrapCommitAtomicWrite(f.File)) }

// BeginAtomicWrite implements [vfs.FileBatchAtomicWrite].
func (f *File) BeginAtomicWrite() error { return vfsutil.WrapBeginAtomicWrite(f.File) }

// RollbackAtomicWrite implements [vfs.FileBatchAtomicWrite].
func (f *File) RollbackAtomicWrite() error { return vfsutil.WrapRollbackAtomicWrite(f.File) }

// Unwrap implements [vfs.FileUnwrap].
func (f *File) Unwrap() vfs.File { return f.File }

// LockState implements [vfs.FileLockState].
func (f *File) LockState() vfs.LockLevel { return vfsutil.WrapLockState(f.File) }

// HasMoved implements [vfs.FileHasMoved].
func (f *File) HasMoved() (bool, error) { return vfsutil.WrapHasMoved(f.File) }

// PersistWAL implements [vfs.FilePersistWAL].
func (f *File) PersistWAL() bool { return vfsutil.WrapPersistWAL(f.File) }

// SetPersistWAL implements [vfs.FilePersistWAL].
func (f *File) SetPersistWAL(keep bool) { vfsutil.WrapSetPersistWAL(f.File, keep) }

// PowersafeOverwrite implements [vfs.FilePowersafeOverwrite].
func (f *File) PowersafeOverwrite() bool { return vfsutil.WrapPowersafeOverwrite(f.File) }

// SetPowersafeOverwrite implements [vfs.FilePowersafeOverwrite].
func (f *File) SetPowersafeOverwrite(is bool) { vfsutil.WrapSetPowersafeOverwrite(f.File, is) }

// SharedMemory implements [vfs.FileSharedMemory]: it is the base's, which the
// library accepts from nowhere else.
func (f *File) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }

// MemoryMapper implements [vfs.FileMemoryMapper].
func (f *File) MemoryMapper() vfs.MemoryMapper { return vfsutil.WrapMemoryMapper(f.File) }
