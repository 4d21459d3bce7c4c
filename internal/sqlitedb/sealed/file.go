package sealed

import (
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// file is a file of the base, with what it can do beyond [vfs.File].
type file struct{ vfs.File }

var (
	_ vfs.FileUnwrap             = file{}
	_ vfs.FileLockState          = file{}
	_ vfs.FileHasMoved           = file{}
	_ vfs.FileSizeHint           = file{}
	_ vfs.FilePersistWAL         = file{}
	_ vfs.FilePowersafeOverwrite = file{}
	_ vfs.FileBatchAtomicWrite   = file{}
	_ vfs.FileSharedMemory       = file{}
)

// Unwrap implements [vfs.FileUnwrap].
func (f file) Unwrap() vfs.File { return f.File }

// LockState implements [vfs.FileLockState].
func (f file) LockState() vfs.LockLevel { return vfsutil.WrapLockState(f.File) }

// HasMoved implements [vfs.FileHasMoved].
func (f file) HasMoved() (bool, error) { return vfsutil.WrapHasMoved(f.File) }

// SizeHint implements [vfs.FileSizeHint].
func (f file) SizeHint(size int64) error { return vfsutil.WrapSizeHint(f.File, size) }

// PersistWAL implements [vfs.FilePersistWAL].
func (f file) PersistWAL() bool { return vfsutil.WrapPersistWAL(f.File) }

// SetPersistWAL implements [vfs.FilePersistWAL].
func (f file) SetPersistWAL(keep bool) { vfsutil.WrapSetPersistWAL(f.File, keep) }

// PowersafeOverwrite implements [vfs.FilePowersafeOverwrite].
func (f file) PowersafeOverwrite() bool { return vfsutil.WrapPowersafeOverwrite(f.File) }

// SetPowersafeOverwrite implements [vfs.FilePowersafeOverwrite].
func (f file) SetPowersafeOverwrite(is bool) { vfsutil.WrapSetPowersafeOverwrite(f.File, is) }

// BeginAtomicWrite implements [vfs.FileBatchAtomicWrite].
func (f file) BeginAtomicWrite() error { return vfsutil.WrapBeginAtomicWrite(f.File) }

// CommitAtomicWrite implements [vfs.FileBatchAtomicWrite].
func (f file) CommitAtomicWrite() error { return vfsutil.WrapCommitAtomicWrite(f.File) }

// RollbackAtomicWrite implements [vfs.FileBatchAtomicWrite].
func (f file) RollbackAtomicWrite() error { return vfsutil.WrapRollbackAtomicWrite(f.File) }

// SharedMemory implements [vfs.FileSharedMemory].
func (f file) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }
