package sqlitedb

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb/files"
	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
	"github.com/ncruces/go-sqlite3/vfs"
)

// place prepares where the database will be: memory, or a locked directory
// with files that only the owner can read.
func (db *DB) place() error {
	if db.opts.Dir == "" {
		db.memory = registerMemory()
		db.vfs, db.path = db.memory.name, "/"+FileName
		db.memory.beginAs(db.path, db.opts.Image)
		return nil
	}
	dir, err := filepath.Abs(db.opts.Dir)
	if err != nil {
		return explainPath(db.opts.Dir, err)
	}
	if err := makeDir(dir); err != nil {
		return err
	}
	if db.lock, err = lockDir(dir); err != nil {
		return err
	}
	db.path = filepath.Join(dir, FileName)
	if db.opts.Disk != nil {
		db.disk, db.base = db.opts.Disk, files.Name+"-"+rand.Text()
		files.Register(db.base, db.opts.Disk.VFS())
		return db.watch()
	}
	db.disk, db.base, db.reserve = systemDisk{}, files.Name, newReserve(dir)
	for _, suffix := range []string{"", "-wal", "-shm", witnessSuffix} {
		if err := makePrivate(db.path + suffix); err != nil {
			return err
		}
	}
	if err := db.lock.lockWitness(dir); err != nil {
		return fmt.Errorf("lock %s: %w", db.path+witnessSuffix, err)
	}
	if db.index, err = holdIndex(db.path + "-shm"); err != nil {
		return err
	}
	return db.watch()
}

// watch lets the database be opened in a way that what is written is sealed and noted.
func (db *DB) watch() error {
	files.RegisterSystem()
	if err := db.openWitness(); err != nil {
		return err
	}
	db.vfs = sealed.Name + "-" + rand.Text()
	sealed.Register(db.vfs, db.base, db.notes, db.opts.Disk == nil)
	return nil
}

// watchAnew forgets what was noted since [DB.watch], which may not have found room.
func (db *DB) watchAnew() error {
	if db.memory != nil {
		return nil
	}
	vfs.Unregister(db.vfs)
	if err := db.witness.Close(); err != nil {
		return explainPath(db.path+witnessSuffix, err)
	}
	return db.watch()
}

// uri is the database's name for SQLite.
func (db *DB) uri() string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: db.path}
	u.RawQuery = url.Values{"vfs": {cmp.Or(db.vfs, sealed.Name)}}.Encode()
	return u.String()
}

// makeDir creates the directory and makes its name durable.
func makeDir(dir string) error {
	switch info, err := os.Stat(dir); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return explainPath(dir, syscall.ENOTDIR)
	case !errors.Is(err, fs.ErrNotExist):
		return explainPath(dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return explainPath(dir, err)
	}
	return syncDir(filepath.Dir(dir))
}

// makePrivate creates the file for its owner alone before SQLite would create
// it for everyone, and closes one that others could read.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return explainPath(path, err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		return explainPath(path, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return explainPath(dir, err)
	}
	defer func() { _ = d.Close() }() // nothing was written
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// systemDisk is the operating system's.
type systemDisk struct{}

// VFS implements [Disk].
func (systemDisk) VFS() string { return "" }

// SyncDir implements [Disk].
func (systemDisk) SyncDir(dir string) error { return syncDir(dir) }

// Read implements [Disk].
func (systemDisk) Read(path string) (io.ReadCloser, int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(strings.NewReader("")), 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// OpenFile implements [Disk].
func (systemDisk) OpenFile(path string) (sealed.Storage, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// OpenWitness implements [Disk].
func (d systemDisk) OpenWitness(path string) (sealed.Storage, error) {
	m, err := openMapped(path, witnessBytes)
	if isFull(err) {
		return d.OpenFile(path)
	}
	return m, err
}

// Stamp implements [Disk].
func (systemDisk) Stamp(path string) (sealed.Stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return sealed.Stamp{}, err
	}
	return sealed.Stamp{Size: info.Size(), Changed: info.ModTime().UnixNano()}, nil
}

// Boot implements [Disk].
func (systemDisk) Boot() [16]byte { return bootID() }

// Remove implements [Disk].
func (systemDisk) Remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// clearUnfinished removes a database whose creation was cut short by a loss of
// power. SQLite writes its first page under a journal, but the journal's name
// may not survive. What is left then is at most a page and no WAL: nothing that
// was ever acknowledged is in it.
func (db *DB) clearUnfinished() error {
	if db.memory != nil {
		return nil
	}
	sizes := map[string]int64{}
	var head string
	for _, suffix := range []string{"-wal", "-journal", ""} {
		var err error
		if head, sizes[suffix], err = db.head(db.path+suffix, 128); err != nil {
			return explainPath(db.path, err)
		}
	}
	if sizes[""] == 0 && (sizes["-wal"] > 0 || db.witness.Served()) {
		return db.errMissing() // SQLite would remove the log
	}
	if sizes[""] == 0 || sizes[""] > firstPage || sizes["-wal"] > 0 || !isUnfinished(head, sizes["-journal"] > 0) {
		return nil
	}
	if db.witness.Served() {
		return db.errMissing()
	}
	for _, suffix := range []string{"-journal", ""} {
		if err := db.disk.Remove(db.path + suffix); err != nil {
			return explainPath(db.path, err)
		}
	}
	if db.opts.Disk != nil {
		return nil
	}
	return makePrivate(db.path)
}

func (db *DB) errMissing() error {
	return &jobhost.Error{
		Code:    jobhost.CodeUnavailable,
		Message: fmt.Sprintf("%s is missing or empty, and there were jobs in it", db.path),
		Hint: fmt.Sprintf("look for it, or restore a backup: jobhost restore; to begin with nothing, remove %[1]s%[2]s and %[1]s-wal",
			db.path, witnessSuffix),
	}
}

// firstPage is the size of a file that has one page.
const firstPage = 4096

// isUnfinished looks at the beginning of a file of one page: its first bytes were
// never written, or it is one of ours without a table. Of the latter a part may be
// of before and a part of after the last change, so that its checksum is wrong; with
// a journal SQLite puts that right.
func isUnfinished(head string, journal bool) bool {
	const (
		magic                 = "SQLite format 3\x00"
		reserved, kind, cells = 20, 100, 103 // offsets in the first page
		leaf                  = 0x0d
	)
	if strings.Trim(head[:min(len(head), len(magic))], "\x00") == "" {
		return true
	}
	return !journal && len(head) >= cells+2 && strings.HasPrefix(head, magic) &&
		(head[reserved] == checksumBytes || head[reserved] == oldChecksumBytes) && head[kind] == leaf && head[cells:cells+2] == "\x00\x00"
}

// head returns up to n bytes from the beginning of a file, and its size.
func (db *DB) head(path string, n int) (string, int64, error) {
	f, size, err := db.disk.Read(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	head, err := io.ReadAll(io.LimitReader(f, int64(n)))
	return string(head), size, err
}

// explainPath turns an error about a file or directory into one for people.
func explainPath(path string, err error) error {
	e := &jobhost.Error{Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("%s cannot be used", path), Cause: err}
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Code = jobhost.CodeDenied
		e.Message = fmt.Sprintf("%s cannot be written", path)
		e.Hint = "give the user that runs jobhost write access to the directory and the files in it, or choose another one"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		e.Code = jobhost.CodeInvalid
		e.Message = fmt.Sprintf("%s is not what a store needs", path)
		e.Hint = "name a directory that is missing, empty, or was made by jobhost"
	case isFull(err):
		e.Message, e.Hint = fmt.Sprintf("%s cannot be used: the disk is full", path), hintFullStart
	}
	return e
}
