package sealed

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// database is the main file of a database.
type database struct {
	file
	notes *Notes
	form  form // as its first page says, once that was seen
}

var _ vfs.FilePragma = (*database)(nil)

// ReadAt implements [vfs.File]. A page that is not what was written is an error.
func (f *database) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if isHeader(p[:n], off) {
		f.form = formOf(p)
	}
	if f.form == unsealed || n != len(p) || !isPage(n) || off%int64(n) != 0 {
		return n, err
	}
	page := uint32(off/int64(n)) + 1
	if f.accept(page, p) {
		return n, err
	}
	// It may have got its seal just now, when the log was restarted and its notes were dropped.
	if n, err = f.File.ReadAt(p, off); n == len(p) && f.accept(page, p) {
		return n, err
	}
	return 0, sqlite3.IOERR_DATA
}

// accept reports whether a page is what jobhost wrote, here or to the log.
func (f *database) accept(page uint32, p []byte) bool {
	switch f.form {
	case broken:
		return false
	case older:
		return binary.LittleEndian.Uint64(p[len(p)-oldBytes:]) == oldSum(p)
	}
	s := sum(page, p)
	return isSealed(page, p, s) || f.notes.moved(page, s)
}

// WriteAt implements [vfs.File]. It changes the end of the page that SQLite hands over,
// which is not SQLite's.
func (f *database) WriteAt(p []byte, off int64) (int, error) {
	if isHeader(p, off) {
		f.form = formOf(p)
	}
	if f.form == unsealed || !isPage(len(p)) || off%int64(len(p)) != 0 {
		return f.File.WriteAt(p, off)
	}
	if f.form == older {
		binary.LittleEndian.PutUint64(p[len(p)-oldBytes:], oldSum(p))
		return f.File.WriteAt(p, off)
	}
	page := uint32(off/int64(len(p))) + 1
	s := sum(page, p)
	seal(page, p, s)
	n, err := f.File.WriteAt(p, off)
	if err == nil {
		f.notes.sealed(page, s)
	}
	return n, err
}

// Pragma implements [vfs.FilePragma]: the size of pages doesn't change.
func (f *database) Pragma(name, value string) (string, error) {
	if name == "page_size" && value != "" && f.form != unsealed {
		return "", nil
	}
	return "", sqlite3.NOTFOUND
}

// DeviceCharacteristics implements [vfs.File]: only whole pages are read, since only they can be checked.
func (f *database) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return f.File.DeviceCharacteristics() &^ vfs.IOCAP_SUBPAGE_READ
}

// base is a database without its seals being looked at.
type base struct{ vfs.File }

// Sync implements [Storage].
func (b base) Sync() error { return b.File.Sync(vfs.SYNC_FULL) }

// sealAnew seals a page in the file if it holds what the sum says, and reports whether it does.
func sealAnew(db Storage, page uint32, size int, s uint64) (bool, error) {
	p, off := make([]byte, size), int64(page-1)*int64(size)
	if n, err := db.ReadAt(p, off); n < size && !errors.Is(err, io.EOF) {
		return false, err
	} else if n < size {
		return false, nil
	}
	if sum(page, p) != s {
		return false, nil
	}
	if isSealed(page, p, s) {
		return true, nil
	}
	seal(page, p, s)
	_, err := db.WriteAt(p[size-Bytes:], off+int64(size-Bytes))
	return true, err
}
