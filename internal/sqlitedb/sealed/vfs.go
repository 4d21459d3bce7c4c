// Package sealed is the SQLite VFS that seals the pages of a database, and knows
// what is in its log:
//
//	SQLite ─► database: each page that is written gets a seal, each that is read must have it
//	       ─► log:      what is written to it is noted in [Notes], and beside it in the [Witness]
//	       ─► the base: package files
//
// A seal is the number of a page and a checksum of what is in it. It is written when
// jobhost moves a page from the log into the database. Other programs, which may move
// the log too, don't write one: then what the page holds is compared with what was
// noted when it was written to the log.
package sealed

import (
	"bytes"
	"os"
	"syscall"

	"github.com/jobhost/jobhost/internal/sqlitedb/files"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Name is the VFS on the operating system's files, without notes.
const Name = "jobhost-sealed"

// RegisterSystem makes [Name] known to SQLite. Doing it again changes nothing.
func RegisterSystem() {
	files.RegisterSystem()
	vfs.Register(Name, VFS{base: vfs.Find(files.Name), private: true})
}

// Register makes a VFS over that of the name base known to SQLite, until
// [vfs.Unregister]. It is for one database, the one of the notes. The files that
// SQLite makes are for their owner only if they are private, which needs the
// operating system's files.
func Register(name, base string, notes *Notes, private bool) {
	vfs.Register(name, VFS{base: vfs.Find(base), notes: notes, private: private})
}

// VFS opens databases with seals.
type VFS struct {
	base    vfs.VFS
	notes   *Notes // nil = nothing is known of the log
	private bool
}

// The library calls OpenFilename, which it prefers to Open.
var _ vfs.VFSFilename = VFS{}

// Open implements [vfs.VFS].
func (v VFS) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return vfsutil.WrapOpen(v.base, name, flags) // a temporary file
}

// OpenFilename implements [vfs.VFSFilename].
func (v VFS) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if v.private && flags&vfs.OPEN_CREATE != 0 && name != nil {
		// SQLite would make it readable for everyone.
		if f, err := os.OpenFile(name.String(), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600); err == nil {
			_ = f.Close() // nothing was written
		}
	}
	f, got, err := vfsutil.WrapOpenFilename(v.base, name, flags)
	switch {
	case err != nil:
		return nil, got, err
	case flags&vfs.OPEN_MAIN_DB != 0:
		// Without this flag the library puts no checksums of its own on top.
		return &database{file: file{f}, notes: v.notes}, got &^ vfs.OPEN_MAIN_DB, nil
	case flags&vfs.OPEN_WAL != 0 && v.notes != nil:
		db, _ := vfsutil.UnwrapFile[*database](name.DatabaseFile())
		return &log{file: file{f}, notes: v.notes, db: db}, got, nil
	}
	return f, got, nil
}

// Delete implements [vfs.VFS].
func (v VFS) Delete(name string, syncDir bool) error { return v.base.Delete(name, syncDir) }

// Access implements [vfs.VFS].
func (v VFS) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return v.base.Access(name, flags)
}

// FullPathname implements [vfs.VFS].
func (v VFS) FullPathname(name string) (string, error) { return v.base.FullPathname(name) }

// headerBytes is how much of the first page is needed to recognize a file.
const headerBytes = 100

// isHeader reports whether bytes are the beginning of a database.
func isHeader(p []byte, off int64) bool {
	return off == 0 && len(p) >= headerBytes && bytes.HasPrefix(p, []byte("SQLite format 3\x00"))
}
