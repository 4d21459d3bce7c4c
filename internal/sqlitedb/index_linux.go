package sqlitedb

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// An SQLite that is the first to open the index of a log, the file "-shm", cuts it
// to nothing and lets it grow again, since the process that had it before may have died
// half-way. On a full disk its room may be gone in between. So the host is there
// first: it empties the file where it is, and holds the lock that says that
// a process has the file open: https://sqlite.org/walformat.html#wal_locks
const (
	setOpenLock = 37  // F_OFD_SETLK: the lock is the open file's, not the process's
	deadMan     = 128 // where it is
)

// holdIndex returns the index of a log, which is ready to be used, or nil when there
// is none yet. It is closed after all connections.
func holdIndex(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explainPath(path, err)
	}
	if err := takeIndex(f); err != nil {
		// SQLite does it its own way.
		return nil, f.Close() //nolint:nilerr // which has a message of its own if that fails too
	}
	return f, nil
}

func takeIndex(f *os.File) error {
	if lockIndex(f, syscall.F_WRLCK) == nil {
		info, err := f.Stat()
		if err == nil {
			_, err = f.WriteAt(make([]byte, info.Size()), 0)
		}
		if err != nil {
			return err
		}
	}
	return lockIndex(f, syscall.F_RDLCK) // another process may have it open as well
}

func lockIndex(f *os.File, kind int16) error {
	return syscall.FcntlFlock(f.Fd(), setOpenLock, &syscall.Flock_t{Type: kind, Start: deadMan, Len: 1})
}
