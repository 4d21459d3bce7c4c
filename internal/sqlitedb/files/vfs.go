// Package files is the SQLite VFS through which jobhost opens its databases:
//
//	SQLite ─► go-sqlite3's page checksums ─► File ─► the base: the operating system's files, or a test's
//
// It hands everything on to the base, and remembers what the base answered when
// it refused to write. SQLite reports most of that as "disk I/O error", without
// the cause; whether a disk is full or broken decides whether the host goes on,
// so here a full disk gets a code of its own on its way to SQLite, sqlite3.FULL,
// and [TakeFault] returns the cause.
package files

import (
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Name is the VFS on the operating system's files.
const Name = "jobhost"

// RegisterSystem makes [Name] known to SQLite. Doing it again changes nothing.
func RegisterSystem() { vfs.Register(Name, VFS{vfs.Find("os")}) }

// Register makes a VFS over that of the name base known to SQLite, until
// [vfs.Unregister].
func Register(name, base string) { vfs.Register(name, VFS{vfs.Find(base)}) }

// VFS opens files of its base as [File].
type VFS struct{ base vfs.VFS }

// The library calls OpenFilename, which it prefers to Open.
var _ vfs.VFSFilename = VFS{}

// Open implements [vfs.VFS].
func (v VFS) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := vfsutil.WrapOpen(v.base, name, flags)
	if err != nil {
		return nil, flags, withCode(err)
	}
	return &File{File: f, faults: &faults{}}, flags, nil
}

// OpenFilename implements [vfs.VFSFilename]. A log or journal shares the memory
// of errors with its database.
func (v VFS) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	shared := &faults{}
	if of := name.DatabaseFile(); of != nil {
		if database, ok := vfsutil.UnwrapFile[*File](of); ok {
			shared = database.faults
		}
	}
	f, flags, err := vfsutil.WrapOpenFilename(v.base, name, flags)
	if err != nil {
		shared.note(err)
		return nil, flags, withCode(err)
	}
	return &File{File: f, faults: shared}, flags, nil
}

// Delete implements [vfs.VFS].
func (v VFS) Delete(name string, syncDir bool) error { return withCode(v.base.Delete(name, syncDir)) }

// Access implements [vfs.VFS].
func (v VFS) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return v.base.Access(name, flags)
}

// FullPathname implements [vfs.VFS].
func (v VFS) FullPathname(name string) (string, error) { return v.base.FullPathname(name) }

// withCode gives an error that there is no room the code that says so; others
// stay as they are.
func withCode(err error) error {
	if IsFull(err) {
		return vfs.SystemError(err, sqlite3.FULL)
	}
	return err
}
