package sqlitedb

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/sqlitedb/files"
	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

const (
	// copyAtOnce is how many pages are copied between two looks at the context and the log.
	copyAtOnce = 1000
	// copyLog is by how much the log may grow while a copy is made; or by the size
	// of the database, if that is more.
	copyLog = 1 << 30
)

// source is a database that is being copied, in one read transaction.
type source struct {
	*conn
	path string
	vfs  string // of its own, with notes
}

// openSource opens a database that others may be using. What other programs have moved
// from its log has no seals yet, so it is compared with what is known of the log.
func openSource(path string) (_ *source, err error) {
	notes := sealed.NewNotes(nil, nil)
	s := &source{path: path, vfs: sealed.Name + "-" + rand.Text()}
	sealed.RegisterSystem()
	sealed.Register(s.vfs, files.Name, notes, true)
	defer func() {
		if err != nil {
			vfs.Unregister(s.vfs)
		}
	}()
	// Writing is never done, but a reader of a log needs its index, which is a file.
	c, err := (&DB{path: path, vfs: s.vfs}).connect(sqlite3.OPEN_READWRITE)
	if err != nil {
		return nil, explainOpen(path, err)
	}
	s.conn = c
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if err := remember(path, notes); err != nil {
		return nil, err
	}
	if err := identify(c, path); err != nil {
		return nil, err
	}
	// If the host ends before that, the log is for the next one to write back, and
	// not for who is the last to look at it.
	if _, err := c.db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return nil, explainOpen(path, err)
	}
	// With a transaction of its own the copy is of one moment; without one it
	// would restart with each commit of others. The log can't be emptied
	// until it ends.
	if err := c.exec("PRAGMA query_only=1; BEGIN; SELECT count(*) FROM sqlite_schema"); err != nil {
		return nil, explainOpen(path, err)
	}
	// The log isn't restarted until the end of the transaction. What is in the database by then was in it
	// before, or is in it now.
	return s, remember(path, notes)
}

// remember adds to notes what is known of the log of a database that others may be using.
func remember(path string, notes *sealed.Notes) (err error) {
	witness, _, err := systemDisk{}.Read(path + witnessSuffix)
	if err != nil {
		return explainPath(path+witnessSuffix, err)
	}
	defer func() { _ = witness.Close() }() // nothing was written
	log, _, err := systemDisk{}.Read(path + "-wal")
	if err != nil {
		return explainPath(path+"-wal", err)
	}
	defer func() { _ = log.Close() }() // nothing was written
	at, ok := witness.(io.ReaderAt)
	if !ok {
		at = strings.NewReader("")
	}
	if err := notes.Remember(at, bufio.NewReaderSize(log, 1<<18)); err != nil {
		return explainPath(path, err)
	}
	return nil
}

func (s *source) close() error {
	err := s.conn.close()
	vfs.Unregister(s.vfs)
	return err
}

// copyTo copies the database into a file that is empty, by SQLite's online
// backup, as long as the log doesn't grow by more than so many bytes in that time.
func (s *source) copyTo(ctx context.Context, to string, most int64) (err error) {
	if err := s.shapeAlike(to); err != nil {
		return err
	}
	b, err := s.db.BackupInit("main", (&DB{path: to}).uri())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	began := size(s.path + "-wal")
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if grown := size(s.path+"-wal") - began; grown > most {
			return errOutrun(grown)
		}
		if done, err = b.Step(copyAtOnce); err != nil {
			return err
		}
	}
	return nil
}

// shapeAlike makes an empty file a database with pages like those of the source.
// The checksum of a page is put into it on its way to the file, and only if the
// first page, whose header says that there is room for it, was there before. A
// page that comes from the log has none yet.
func (s *source) shapeAlike(to string) (err error) {
	pageSize, err := s.number("PRAGMA page_size")
	if err != nil {
		return err
	}
	reserved, err := s.reserved()
	if err != nil {
		return err
	}
	c, err := (&DB{path: to}).connect(sqlite3.OPEN_READWRITE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if _, err := c.db.FileControl("main", sqlite3.FCNTL_RESERVE_BYTES, reserved); err != nil {
		return err
	}
	return c.exec(fmt.Sprintf("PRAGMA page_size=%d; PRAGMA auto_vacuum=%d; PRAGMA application_id=%d", pageSize, autoVacuum, applicationID))
}

// explain returns why a copy was not made. Damage is that of the source only if
// it is found there.
func (s *source) explain(ctx context.Context, to string, err error) error {
	if isDamage(err) {
		if found := s.integrity(ctx); isDamage(found) {
			return explainOpen(s.path, found)
		}
	}
	return explainCopy(to, err)
}

// explainCopy turns an error of making or checking a copy into one for people.
// It never advises to put a backup in the place of the store.
func explainCopy(to string, err error) error {
	const untouched = "the store is as it was"
	e := &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("the copy %s cannot be made", to), Cause: err,
		Hint: "try again, or name a directory on another disk; " + untouched,
	}
	switch {
	case isFull(err):
		e.Message = fmt.Sprintf("the copy %s cannot be made: the disk is full", to)
		e.Hint = "free space on it, or name a directory on another disk; " + untouched
	case isDamage(err):
		e.Message = fmt.Sprintf("the copy %s is not what was copied", to)
		e.Hint = "make it again, on another disk if that happens twice; " + untouched + ", and every page of it can be read"
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EROFS):
		e.Code = jobhost.CodeDenied
		e.Hint = "name a directory that the user who runs this may write to; " + untouched
	default:
		if _, ok := errors.AsType[*jobhost.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	return e
}

func errOutrun(grown int64) error {
	return &jobhost.Error{
		Code:    jobhost.CodeUnavailable,
		Message: fmt.Sprintf("more is written than can be copied: the log has grown by %d MiB since the copy began", grown>>20),
		Hint:    "make the backup on a faster disk, or when there is less to do; the store is as it was",
	}
}

// size returns the size of a file, 0 for none.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// preserve puts a copy of a file that is about to be migrated beside it, unless
// an earlier try has and was cut short later. Nothing has been changed in it yet
// but that the log is written back, so that a jobhost from before opens the copy.
func (db *DB) preserve(c *conn) error {
	if db.memory != nil || db.opts.Disk != nil {
		return nil
	}
	name, version, err := pending(c, db.opts.Schemas)
	if err != nil {
		return explainOpen(db.path, err)
	}
	if name == "" {
		return nil
	}
	target := fmt.Sprintf("%s.before-%s-%d", db.path, name, version)
	if migrated, err := sinceCopy(c, target); migrated || err != nil {
		return err
	}
	// The names first, for the reason that is with openWriter.
	if err := db.syncNames(); err != nil {
		return err
	}
	if err := db.emptyLog(c); err != nil {
		return err
	}
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return explainOpen(db.path, err)
	}
	err = db.copyBeside(target)
	if err := errors.Join(err, c.exec("ROLLBACK")); err != nil {
		return fmt.Errorf("copy the store before it is brought up to date: %w", err)
	}
	return nil
}

// copyBeside copies the file as it is, to the byte; or by pages, if another
// program that reads it keeps something in the log.
func (db *DB) copyBeside(target string) (err error) {
	ctx := context.Background()
	s, err := openSource(db.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return finish(ctx, s, target, func(part string) error {
		if size(db.path+"-wal") > 0 {
			return s.copyTo(ctx, part, max(copyLog, size(db.path)))
		}
		return errors.Join(removeFile(part), copyFile(db.path, part))
	})
}

// finish makes a copy, checks it, and gives it its name when it is whole and durable.
func finish(ctx context.Context, s *source, target string, fill func(part string) error) (err error) {
	part := target + ".part"
	if err := errors.Join(removePart(part), makePrivate(part)); err != nil {
		return explainCopy(part, err)
	}
	defer func() { err = errors.Join(err, removePart(part)) }()
	// The log can be emptied again while the copy is checked.
	if err := errors.Join(fill(part), s.exec("ROLLBACK")); err != nil {
		return s.explain(ctx, part, err)
	}
	if err := check(ctx, part, nil); err != nil {
		return s.explain(ctx, part, err)
	}
	if err := syncFile(part); err != nil {
		return explainCopy(part, err)
	}
	if err := os.Rename(part, target); err != nil {
		return explainCopy(target, err)
	}
	return syncDir(filepath.Dir(target))
}

// sinceCopy reports whether there is a copy of the file from before a migration
// that has begun: of lower versions than the file is of now.
func sinceCopy(c *conn, path string) (bool, error) {
	if size(path) == 0 {
		return false, nil
	}
	now, err := versionsOf(c)
	if err != nil {
		return false, err
	}
	then, err := versionsAt(path)
	if err != nil || len(then) == 0 {
		return false, nil //nolint:nilerr // a copy that can't be read is none
	}
	for name, version := range then {
		if version > now[name] {
			return false, nil
		}
	}
	for name, version := range now {
		if version > then[name] {
			return true, nil
		}
	}
	return false, nil
}

// versionsAt returns the versions of the schemas in a file that is not in use.
func versionsAt(path string) (_ map[string]int64, err error) {
	c, err := (&DB{path: path}).connect(sqlite3.OPEN_READWRITE)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return versionsOf(c)
}
