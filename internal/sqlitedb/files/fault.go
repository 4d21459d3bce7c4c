package files

import (
	"errors"
	"sync"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// IsFull reports whether an error says that there was no room: the disk is full,
// or the quota is used up.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, sqlite3.FULL)
}

// ErrSync is in the tree of an error of syncing. What the kernel could not write then
// may not be written by the next sync either, which succeeds.
var ErrSync = errors.New("sync")

// faults are the errors of writing the files of one connection.
type faults struct {
	mu   sync.Mutex // protects last
	last error
}

// note remembers an error. A full disk is the least severe: it hides no other error.
func (f *faults) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil || !IsFull(err) {
		f.last = err
	}
}

func (f *faults) take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.last
	f.last = nil
	return err
}

// TakeFault returns why a write of the connection's files failed since the last
// call, nil if none did, and forgets it.
func TakeFault(c *sqlite3.Conn) error {
	pointer, err := c.FileControl("main", sqlite3.FCNTL_FILE_POINTER)
	if err != nil {
		return nil //nolint:nilerr // a connection without a file had no error
	}
	file, _ := pointer.(vfs.File)
	if f, ok := vfsutil.UnwrapFile[*File](file); ok {
		return f.faults.take()
	}
	return nil
}
