package sqlitedb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/ncruces/go-sqlite3"
)

// Backup copies the database of a directory into another one, which must not
// hold one yet, and checks the copy page by page. The directory may be in use:
// the copy is what was committed when it began, and whoever writes goes on;
// only the log can't be emptied meanwhile. Nothing but the database is copied.
func Backup(ctx context.Context, dir, to string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("back up: %w", err)
		}
	}()
	from, target := filepath.Join(dir, FileName), filepath.Join(to, FileName)
	if _, err := os.Stat(from); err != nil {
		return explainPath(from, err)
	}
	if err := makeDir(to); err != nil {
		return err
	}
	if _, err := os.Lstat(target); err == nil {
		return &jobhost.Error{
			Code: jobhost.CodeConflict, Message: target + " exists", Hint: "name a directory without a backup in it",
		}
	}
	// It gets its name when it is whole and checked.
	part := target + ".part"
	if err := errors.Join(removeFile(part), makePrivate(part)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeFile(part)) }()
	if err := copyPages(ctx, from, part); err != nil {
		return explainOpen(part, err)
	}
	if err := Verify(ctx, part, nil); err != nil {
		return err
	}
	if err := syncFile(part); err != nil {
		return err
	}
	if err := os.Rename(part, target); err != nil {
		return explainPath(target, err)
	}
	return syncDir(to)
}

// backupPages is how many pages are copied before somebody looks at the context.
const backupPages = 1000

// copyPages copies a database by SQLite's online backup, in one read transaction.
func copyPages(ctx context.Context, from, to string) (err error) {
	// Writing is never done, but a reader of a log needs its index, which is a file.
	db := &DB{path: from}
	c, err := db.connect(sqlite3.OPEN_READWRITE)
	if err != nil {
		return explainOpen(from, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := identify(c, from); err != nil {
		return err
	}
	// With a transaction of its own the copy is of one moment; without one it
	// would begin anew with each commit of others.
	if err := c.exec("PRAGMA query_only=1; BEGIN; SELECT count(*) FROM sqlite_schema"); err != nil {
		return explainOpen(from, err)
	}
	b, err := c.db.BackupInit("main", (&DB{path: to}).uri())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if done, err = b.Step(backupPages); err != nil {
			return err
		}
	}
	return nil
}

// Verify reads a whole database that nobody uses: it must be jobhost's, not be
// of a newer one than the schemas, if there are any, and every page of it must
// be what was written.
func Verify(ctx context.Context, path string, schemas []Schema) (err error) {
	db := &DB{path: path}
	c, err := db.connect(sqlite3.OPEN_READWRITE)
	if err != nil {
		return explainOpen(path, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := identify(c, path); err != nil {
		return err
	}
	if id, err := c.number("PRAGMA application_id"); id == 0 || err != nil {
		return errors.Join(err, errForeign(path, "it is empty"))
	}
	if err := refuseNewer(c, path, schemas); err != nil {
		return err
	}
	return c.integrity(ctx, path)
}

// integrity runs SQLite's own check, which reads every page.
func (c *conn) integrity(ctx context.Context, path string) error {
	c.db.SetInterrupt(ctx)
	defer c.db.SetInterrupt(context.Background())
	s := c.Stmt("PRAGMA integrity_check(1)")
	verdict := ""
	if s.Step() {
		verdict = s.ColText(0)
	}
	err := s.Done()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return explainOpen(path, err)
	case verdict != "ok":
		return explainOpen(path, fmt.Errorf("%w: %s", sqlite3.CORRUPT, verdict))
	}
	return nil
}

// Restore puts the backup of a directory in the place of the database of
// opts.Dir, which nobody may be using. A database that is there is a conflict,
// unless it is to be replaced: then it is kept under another name, which is returned.
func Restore(ctx context.Context, opts Options, from string, replace bool) (kept string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore: %w", err)
		}
	}()
	source, target := filepath.Join(from, FileName), filepath.Join(opts.Dir, FileName)
	if _, err := os.Stat(source); err != nil {
		return "", explainPath(source, err)
	}
	if log, err := os.Stat(source + "-wal"); err == nil && log.Size() > 0 {
		// The last commits are in it, and the copy would be without them.
		return "", &jobhost.Error{
			Code: jobhost.CodeInvalid, Message: fmt.Sprintf("%s is not a backup but a store: it has a write-ahead log", source),
			Hint: "to put the log into it: sqlite3 " + source + " 'PRAGMA wal_checkpoint(TRUNCATE)'",
		}
	}
	if err := makeDir(opts.Dir); err != nil {
		return "", err
	}
	lock, err := lockDir(opts.Dir)
	if err != nil {
		return "", err
	}
	defer lock.release()
	part := target + ".part"
	if err := errors.Join(removeFile(part), copyFile(source, part)); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, removeFile(part)) }()
	if err := Verify(ctx, part, opts.Schemas); err != nil {
		return "", err
	}
	if info, err := os.Stat(target); err == nil && info.Size() > 0 {
		if !replace {
			return "", &jobhost.Error{
				Code: jobhost.CodeConflict, Message: target + " exists",
				Hint: "restore into another directory, or say --replace: it is kept under another name then",
			}
		}
		kept = fmt.Sprintf("%s.replaced-%s", target, time.Now().UTC().Format("20060102T150405.000"))
	}
	if err := moveAside(target, kept); err != nil {
		return "", err
	}
	if err := errors.Join(syncFile(part), os.Rename(part, target)); err != nil {
		return "", explainPath(target, err)
	}
	return kept, syncDir(opts.Dir)
}

// moveAside renames a database with its log, or removes an empty one. The log
// goes first: a database without its log has lost commits, and one with the log
// of another is damaged.
func moveAside(target, kept string) error {
	for _, suffix := range []string{"-wal", "-shm", witnessSuffix, ""} {
		var err error
		if kept == "" || suffix == "-shm" {
			err = removeFile(target + suffix)
		} else {
			err = os.Rename(target+suffix, kept+suffix)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return explainPath(target+suffix, err)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return explainPath(from, err)
	}
	defer func() { _ = in.Close() }() // nothing was written
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return explainPath(to, err)
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(explainPath(to, err), out.Close())
	}
	if err := out.Close(); err != nil {
		return explainPath(to, err)
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return explainPath(path, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return explainPath(path, err)
	}
	return nil
}

// FreeSpace returns how many bytes a user without privileges can still write to
// the file system of a directory.
func FreeSpace(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the types differ by system
}
