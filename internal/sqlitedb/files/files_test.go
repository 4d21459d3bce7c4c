package files_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"

	"github.com/jobhost/jobhost/internal/sqlitedb/files"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// abilities are the second interfaces that the library knows of a file.
var abilities = []reflect.Type{
	reflect.TypeFor[vfs.FileLockState](),
	reflect.TypeFor[vfs.FilePersistWAL](),
	reflect.TypeFor[vfs.FilePowersafeOverwrite](),
	reflect.TypeFor[vfs.FileChunkSize](),
	reflect.TypeFor[vfs.FileSizeHint](),
	reflect.TypeFor[vfs.FileHasMoved](),
	reflect.TypeFor[vfs.FileOverwrite](),
	reflect.TypeFor[vfs.FileSync](),
	reflect.TypeFor[vfs.FileCommitPhaseTwo](),
	reflect.TypeFor[vfs.FileBatchAtomicWrite](),
	reflect.TypeFor[vfs.FileCheckpoint](),
	reflect.TypeFor[vfs.FilePragma](),
	reflect.TypeFor[vfs.FileBusyHandler](),
	reflect.TypeFor[vfs.FileSharedMemory](),
	reflect.TypeFor[vfs.FileMemoryMapper](),
}

// What the library's own file can do, so that SQLite relies on it, the one that
// wraps it can do too.
func TestFileHasTheAbilitiesOfTheSystems(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	c := open(t, "file:"+path, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE)
	pointer, err := c.FileControl("main", sqlite3.FCNTL_FILE_POINTER)
	if err != nil {
		t.Fatal(err)
	}
	system := pointer.(vfs.FileUnwrap).Unwrap() // below the library's page checksums
	ours := reflect.TypeFor[*files.File]()
	has := 0
	for _, ability := range abilities {
		if !reflect.TypeOf(system).Implements(ability) {
			continue
		}
		has++
		if !ours.Implements(ability) {
			t.Errorf("%v has no %v", ours, ability)
		}
	}
	if has < 5 {
		t.Fatalf("the system's file %T is said to have %d abilities", system, has)
	}
}

func open(t *testing.T, uri string, flags sqlite3.OpenFlag) *sqlite3.Conn {
	t.Helper()
	c, err := sqlite3.OpenFlags(uri, flags|sqlite3.OPEN_URI)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // some tests leave it broken
	return c
}

// refusing is a base whose files can't be written, for a reason.
type refusing struct {
	vfs.VFSFilename
	why *error
}

func (r refusing) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := r.VFSFilename.OpenFilename(name, flags)
	return refusingFile{f, r.why}, flags, err
}

type refusingFile struct {
	vfs.File
	why *error
}

func (f refusingFile) WriteAt(p []byte, off int64) (int, error) {
	if *f.why != nil {
		return 0, *f.why
	}
	return f.File.WriteAt(p, off)
}

func TestTheCauseOfARefusedWrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		errno syscall.Errno
		full  bool
	}{{syscall.ENOSPC, true}, {syscall.EDQUOT, true}, {syscall.EIO, false}, {syscall.EFBIG, false}} {
		t.Run(tt.errno.Error(), func(t *testing.T) {
			t.Parallel()
			var why error
			name := fmt.Sprintf("refusing-%d", tt.errno)
			vfs.Register(name, refusing{vfs.Find("os").(vfs.VFSFilename), &why})
			defer vfs.Unregister(name)
			files.Register(name+"-over", name)
			defer vfs.Unregister(name + "-over")
			c := open(t, fmt.Sprintf("file:%s?vfs=%s-over", filepath.Join(t.TempDir(), "a.db"), name), sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE)
			if err := c.Exec("CREATE TABLE a(x)"); err != nil {
				t.Fatal(err)
			}
			if fault := files.TakeFault(c); fault != nil {
				t.Fatalf("a fault before one: %v", fault)
			}
			why = &fs.PathError{Op: "write", Path: "a.db", Err: tt.errno}
			err := c.Exec("INSERT INTO a VALUES(1)")
			if errors.Is(err, sqlite3.FULL) != tt.full || errors.Is(err, sqlite3.IOERR) == tt.full {
				t.Errorf("SQLite says %v", err)
			}
			if fault := files.TakeFault(c); !errors.Is(fault, tt.errno) || files.IsFull(fault) != tt.full {
				t.Errorf("the fault is %v", fault)
			}
			if fault := files.TakeFault(c); fault != nil {
				t.Errorf("taken again: %v", fault)
			}
			why = nil
			if err := c.Exec("INSERT INTO a VALUES(2)"); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}
