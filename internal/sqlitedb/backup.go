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
// the copy is what was committed when it began, and writers go on;
// only the log can't be emptied until it ends. Nothing but the database is copied.
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
	if err := refuseTaken(target); err != nil {
		return err
	}
	if err := refuseBrokenLog(dir); err != nil {
		return err
	}
	source, err := openSource(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.close()) }()
	return finish(ctx, source, target, func(part string) error { return source.copyTo(ctx, part, max(copyLog, size(from))) })
}

// refuseTaken refuses to make a database where there is one, or what one has left: a log of
// another would be taken for that of the new one, and so would a journal or a witness.
func refuseTaken(target string) error {
	for _, suffix := range []string{"", "-wal", "-journal", witnessSuffix} {
		if _, err := os.Lstat(target + suffix); err == nil {
			return &jobhost.Error{
				Code: jobhost.CodeConflict, Message: target + suffix + " exists", Hint: "name a directory without a store in it, nor a part of one",
			}
		}
	}
	return nil
}

// Verify reads a whole database that is not in use: it must be jobhost's, not be
// of a newer one than the schemas, and every page of it must be what was written.
func Verify(ctx context.Context, path string, schemas []Schema) error {
	err := check(ctx, path, func(c *conn) error { return refuseNewer(c, path, schemas) })
	switch {
	case err == nil:
		return nil
	case isDamage(err):
		return &jobhost.Error{
			Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("%s is damaged", path), Cause: err,
			Hint: "take another backup; nothing was changed",
		}
	}
	return err
}

// check reads a whole database that is not in use, and calls look before that. Damage is what SQLite reports.
func check(ctx context.Context, path string, look func(*conn) error) (err error) {
	c, err := (&DB{path: path}).connect(sqlite3.OPEN_READWRITE)
	if err != nil {
		return explainUnlessDamage(path, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := identify(c, path); err != nil {
		return err
	}
	if id, err := c.number("PRAGMA application_id"); id == 0 || err != nil {
		return errors.Join(err, errForeign(path, "it is empty"))
	}
	if look != nil {
		if err := look(c); err != nil {
			return err
		}
	}
	return explainUnlessDamage(path, c.integrity(ctx))
}

func explainUnlessDamage(path string, err error) error {
	if err == nil || isDamage(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return explainOpen(path, err)
}

// integrity runs SQLite's own check, which reads every page.
func (c *conn) integrity(ctx context.Context) error {
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
		return err
	case verdict != "ok":
		return fmt.Errorf("%w: %s", sqlite3.CORRUPT, verdict)
	}
	return nil
}

// Restore puts the backup of a directory in the place of the database of
// opts.Dir, which must not be in use. A database that is there is a conflict,
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
	if err := errors.Join(removePart(part), copyFile(source, part)); err != nil {
		return "", explainCopy(part, err)
	}
	defer func() { err = errors.Join(err, removePart(part)) }()
	if err := Verify(ctx, part, opts.Schemas); err != nil {
		return "", err
	}
	if err := edit(part, opts.Restored); err != nil {
		return "", explainCopy(part, err)
	}
	if holds(target) {
		if !replace {
			return "", &jobhost.Error{
				Code: jobhost.CodeConflict, Message: target + " exists",
				Hint: "restore into another directory, or say --replace: it is kept under another name then",
			}
		}
		kept = fmt.Sprintf("%s.replaced-%s", target, time.Now().UTC().Format("20060102T150405.000"))
	}
	if err := syncFile(part); err != nil {
		return "", err
	}
	for _, step := range exchange(target, kept, part) {
		if err := step(); err != nil {
			return kept, err
		}
	}
	return kept, syncDir(opts.Dir)
}

// holds reports whether there is a database, or the log of one.
func holds(target string) bool { return size(target) > 0 || size(target+"-wal") > 0 }

// edit changes a file that is not in use, in one transaction.
func edit(path string, change func(Querier) error) (err error) {
	if change == nil {
		return nil
	}
	c, err := (&DB{path: path}).connect(sqlite3.OPEN_READWRITE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := change(c); err != nil {
		return err
	}
	return c.exec("COMMIT")
}

// exchange returns the steps that put a file in the place of a database, which is renamed with its
// log, or removed if it is to be kept nowhere. A kill between two of them must not leave what a host takes
// for a whole store and isn't: the log goes first, since with that of another a database is damaged, and the
// witness last, which refuses a database without its log, none at all, and another one.
func exchange(target, kept, part string) []func() error {
	aside := func(suffix string) func() error {
		return func() error {
			var err error
			if kept == "" || suffix == "-shm" {
				err = removeFile(target + suffix)
			} else {
				err = os.Rename(target+suffix, kept+suffix)
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return explainPath(target+suffix, err)
			}
			return nil
		}
	}
	place := func() error {
		if err := os.Rename(part, target); err != nil {
			return explainPath(target, err)
		}
		return nil
	}
	return []func() error{aside("-wal"), aside("-shm"), aside("-journal"), aside(""), place, aside(witnessSuffix)}
}

// removePart removes an unfinished copy, with what SQLite keeps beside it: the journal or log of one that was
// cut short would be applied to the next one.
func removePart(part string) error {
	return errors.Join(removeFile(part), removeFile(part+"-journal"), removeFile(part+"-wal"), removeFile(part+"-shm"))
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
