package sqlitedb

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// checkLog looks for damage in the write-ahead log, which SQLite would pass over: it takes
// the first frame that isn't right for the end, and a header that isn't for an empty log, so that
// one flipped bit makes later commits vanish without a word.
//
// What a loss of power leaves is different: each commit was synced before the next one
// was written, so only the last of them can be unfinished. Frames with the marks of
// further commits behind it were acknowledged. The witness knows more: up to where commits were
// acknowledged, exactly after a crash, and at least after a loss of power.
func (db *DB) checkLog() error {
	if db.memory != nil {
		return nil
	}
	path := db.path + "-wal"
	file, size, err := db.disk.Read(path)
	if err != nil {
		return explainPath(path, err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	mark := db.witness.Acknowledged()
	log, err := sealed.Scan(bufio.NewReaderSize(file, 1<<18), mark.Frames)
	if err != nil {
		return explainPath(path, err)
	}
	db.noLog = size == 0 || log.Good == 0
	if size == 0 || log.Good == 0 && log.Lost == 0 && log.Whole {
		return nil // the pages of the database show whether anything is missing
	}
	if why := db.damageOf(log, mark); why != "" {
		return db.refuseLog(path, why)
	}
	if err := db.notes.Adopt(&log); err != nil {
		return explainPath(path, err)
	}
	if log.Lost > 0 {
		kept, err := db.keepLog("torn")
		if err != nil {
			db.log.Warn("there is no copy of the log", logkey.Error, err) // on a full disk a host starts, too
		}
		db.log.Warn("the last commit in the log was not finished when the power was lost, and not acknowledged", logkey.Path, kept)
	}
	return nil
}

// damageOf says what is wrong with a log, "" if nothing is.
func (db *DB) damageOf(log sealed.Log, mark sealed.Mark) string {
	if !log.Whole {
		return "its header is damaged"
	}
	if db.witness.Knows() {
		switch {
		case !db.witness.Recognizes(log.Generation):
			return "it is not the log of this database, or another program has written to it"
		case log.Generation == mark.Generation && mark.Frames > log.Committed,
			log.Generation == mark.Generation && mark.Frames > 0 && log.Tail != mark.Tail:
			return fmt.Sprintf("it can be read up to byte %d, and more was acknowledged", log.End)
		}
	}
	// What lies behind may be left of transactions that found no room when they were synced, and were undone. A
	// witness that is exact knows that nothing of it was acknowledged. Relaxed commits are not synced one by one.
	if log.Lost > 1 && !db.witness.Exact() && !db.witness.Relaxed() && !db.opts.Relaxed {
		return fmt.Sprintf("at least %d commits after byte %d cannot be read", log.Lost-1, log.End)
	}
	return ""
}

func (db *DB) refuseLog(path, why string) error {
	kept, err := db.keepLog("damaged")
	return &jobhost.Error{
		Code:    jobhost.CodeUnavailable,
		Message: fmt.Sprintf("%s is damaged: %s; a copy of it is %s", path, why, cmp.Or(kept, "not kept")),
		Cause:   err,
		Hint:    "check the disk, then restore a backup. " + hintRepair,
	}
}

// refuseBrokenLog refuses to copy a database that no host has if commits in its log can't be read: SQLite
// passes over them, and the copy would look like a good one.
func refuseBrokenLog(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, LockName)); err != nil {
		return nil //nolint:nilerr // no host has ever had it
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil //nolint:nilerr // a host has it, and has looked
	}
	defer lock.release()
	path := filepath.Join(dir, FileName)
	witness, err := os.ReadFile(path + witnessSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explainPath(path+witnessSuffix, err)
	}
	db := &DB{}
	if db.witness, err = sealed.ReadWitness(bytes.NewReader(witness), bootID()); err != nil {
		return explainPath(path+witnessSuffix, err)
	}
	file, size, err := systemDisk{}.Read(path + "-wal")
	if err != nil {
		return explainPath(path+"-wal", err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	mark := db.witness.Acknowledged()
	log, err := sealed.Scan(bufio.NewReaderSize(file, 1<<18), mark.Frames)
	if err != nil {
		return explainPath(path+"-wal", err)
	}
	if size == 0 || log.Good == 0 && log.Lost == 0 && log.Whole {
		db.path = path
		return db.refuseLostLog()
	}
	if why := db.damageOf(log, mark); why != "" {
		return &jobhost.Error{
			Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("%s-wal is damaged: %s", path, why),
			Hint: "a copy would lack it. " + hintRepair,
		}
	}
	return nil
}

// refuseLostLog refuses to copy a database that lacks what was in a log that is gone.
func (db *DB) refuseLostLog() error {
	if !db.witness.Knows() {
		return nil
	}
	stamp, err := systemDisk{}.Stamp(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	if db.witness.Settled() && stamp == db.witness.Stamp() {
		return nil // the host has left it so
	}
	notes := sealed.NewNotes(db.witness, nil)
	complete, err := notes.Recall()
	if err != nil {
		return explainPath(db.path+witnessSuffix, err)
	}
	file, err := os.Open(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	found, err := notes.Look(file)
	if err != nil {
		return explainPath(db.path, err)
	}
	if found.Pages == 0 || found.Missing > 0 || len(found.Unknown) > 0 {
		return nil // the copy meets what is wrong
	}
	lost, err := notes.Lost(file, complete)
	if err != nil {
		return explainPath(db.path, err)
	}
	if len(lost) > 0 {
		return db.errLost(len(lost))
	}
	return nil
}

// emptyLog restarts the log. After a loss of power it may end in parts of a
// commit, which the next ones would overwrite from their beginning only: after
// another loss what is left of them would look like a commit that was good once.
func (db *DB) emptyLog(c *conn) error {
	if db.memory != nil {
		return nil
	}
	err := db.truncateLog(c)
	if isFull(err) && db.reserve.release() == nil {
		err = db.truncateLog(c)
	}
	if db.owed = nil; isFull(err) {
		db.owed = err
		return db.cutLog(c) // what is in it stays there until there is room
	}
	if err != nil {
		return explainOpen(db.path, err)
	}
	return nil
}

func (db *DB) truncateLog(c *conn) error {
	if err := db.dropLog(c); err != nil {
		return fmt.Errorf("take over the log: %w", err)
	}
	return nil
}

// dropLog moves the log into the database and empties it, unless another program reads it. What such a one
// has moved is not moved again, so it gets its seals here, by what was noted of it; that
// is known after a loss of power in between, too.
func (db *DB) dropLog(c *conn) error {
	db.witness.Sync()
	if err := c.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	if empty, err := db.logIsEmpty(); err != nil || !empty {
		return err
	}
	file, err := db.disk.OpenFile(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	return errors.Join(db.notes.SealMoved(file), file.Close())
}

// cutLog removes what follows the last good frame, which takes no room.
func (db *DB) cutLog(c *conn) error {
	path := db.path + "-wal"
	file, _, err := db.disk.Read(path)
	if err != nil {
		return explainPath(path, err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	log, err := sealed.Scan(bufio.NewReaderSize(file, 1<<18), 0)
	if err != nil || log.Good == 0 {
		return err
	}
	pointer, err := c.db.FileControl("main", sqlite3.FCNTL_JOURNAL_POINTER)
	if err != nil {
		return explainOpen(db.path, err)
	}
	open, ok := pointer.(vfs.File)
	if !ok {
		return fmt.Errorf("%s is not open", path)
	}
	if err := open.Truncate(log.End); err != nil {
		return explainPath(path, err)
	}
	return nil
}
