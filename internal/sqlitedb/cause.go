package sqlitedb

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/jobhost/jobhost/internal/sqlitedb/files"
	"github.com/ncruces/go-sqlite3"
)

// forgetFault forgets what the files met before.
func (c *conn) forgetFault() { _ = files.TakeFault(c.db) }

// cause adds to an I/O error of SQLite what the operating system said: by itself
// it is "disk I/O error" for nearly everything. A broken disk is not hidden by one
// that is full as well.
func (c *conn) cause(err error) error {
	if !errors.Is(err, sqlite3.IOERR) && !errors.Is(err, sqlite3.FULL) && !errors.Is(err, sqlite3.CANTOPEN) {
		return err
	}
	fault := files.TakeFault(c.db)
	if fault == nil && (errors.Is(err, sqlite3.IOERR_SHMSIZE) || errors.Is(err, sqlite3.IOERR_SHMMAP)) {
		fault = c.indexFault()
	}
	switch {
	case fault == nil:
		return err
	case files.IsFull(err) && !files.IsFull(fault):
		return fmt.Errorf("%w: %w, and: %s", sqlite3.IOERR, fault, err.Error()) // as text, since this is not for want of room
	}
	return fmt.Errorf("%w: %w", err, fault)
}

// indexFault says why the index of the log did not grow. It is in shared memory,
// which the library keeps from its VFS; so what failed is done again here. If that
// works there was no room a moment ago: nothing else comes and goes.
func (c *conn) indexFault() error {
	const piece = 32 << 10 // by which SQLite lets it grow
	f, err := os.OpenFile(c.db.Filename("main").Database()+"-shm", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return err
	}
	switch err = allocate(f, info.Size()/piece*piece+piece); {
	case err == nil:
		err = syscall.ENOSPC
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	}
	return &os.PathError{Op: "allocate", Path: f.Name(), Err: err}
}
