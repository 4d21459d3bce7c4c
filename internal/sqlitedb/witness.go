package sqlitedb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/sqlitedb/sealed"
	"github.com/ncruces/go-sqlite3"
)

// witnessSuffix makes the name of the witness of a database's log, see [sealed.Witness].
const witnessSuffix = "-witness"

// openWitness reads what was noted of the log by whoever had the database before.
func (db *DB) openWitness() error {
	path := db.path + witnessSuffix
	file, err := db.disk.OpenFile(path)
	if err != nil {
		return explainPath(path, err)
	}
	if db.witness, err = sealed.OpenWitness(file, db.disk.Boot()); err != nil {
		return errors.Join(explainPath(path, err), file.Close())
	}
	db.notes = sealed.NewNotes(db.witness, func() {
		db.log.Warn("another program has written a part of the log into the database; its pages are compared with what was noted, and sealed anew",
			logkey.Path, db.path)
	})
	return nil
}

// The number of the last commit is in the database, too, so that it tells whether all that
// was acknowledged is in it, wherever the log has gone.
const (
	countTable = "CREATE TABLE IF NOT EXISTS commits(id INTEGER PRIMARY KEY, n INTEGER NOT NULL); INSERT OR IGNORE INTO commits VALUES(1, 0)"
	countNext  = "UPDATE commits SET n=?"
)

// countCommits returns the number of the last commit in a database, 0 in one that doesn't count yet.
func countCommits(c *conn) (uint64, error) {
	there, err := c.number("SELECT count(*) FROM sqlite_schema WHERE name='commits'")
	if err != nil || there == 0 {
		return 0, err
	}
	n, err := c.number("SELECT n FROM commits")
	return uint64(n), err
}

// proveCommits refuses a database in which commits are missing that were acknowledged, and
// remembers the number of its last one.
func (db *DB) proveCommits(c *conn) error {
	if db.memory != nil {
		return nil
	}
	n, err := countCommits(c)
	if err != nil {
		return explainOpen(db.path, err)
	}
	db.commits = n
	if !db.witness.Knows() || n >= db.witness.Acknowledged().Commit {
		return nil
	}
	kept, err := db.keepLog("damaged")
	if err != nil {
		return err
	}
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable,
		Message: fmt.Sprintf("%s lacks commits that were acknowledged: it ends at number %d, and the last one was %d%s",
			db.path, n, db.witness.Acknowledged().Commit, kept),
		Hint: "if you have put an older copy in its place, remove " + db.path + witnessSuffix +
			"; else look for " + db.path + "-wal, which has the others, or restore a backup. " + hintRepair,
	}
}

// lookForStrangers compares all pages with their seals if another program has written to the database
// while no host had it. What it has moved there from the log is known by what was noted of the log. Notes
// are lacking after a loss of power only; then pages of which nothing is known are judged later.
func (db *DB) lookForStrangers() error {
	if db.memory != nil || !db.witness.Knows() {
		return nil
	}
	complete, err := db.notes.Recall()
	if err != nil {
		return explainPath(db.path, err)
	}
	stamp, err := db.disk.Stamp(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	empty, err := db.logIsEmpty()
	// With a log the pages in it are written and sealed anyway.
	if err != nil || !empty || stamp == db.witness.Stamp() && stamp != (sealed.Stamp{}) {
		return err
	}
	file, err := db.disk.OpenFile(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	db.found, err = db.notes.Look(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return explainPath(db.path, err)
	}
	if len(db.found.Unknown) == 0 || !complete {
		db.notes.Lenient(len(db.found.Unknown) > 0)
		return nil
	}
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable,
		Message: fmt.Sprintf("%d of %d pages of %s are not what jobhost wrote (%s): they are damaged, or another program has changed them",
			len(db.found.Unknown), db.found.Pages, db.path, pageNumbers(db.found.Unknown)),
		Hint: "restore a backup. " + hintRepair,
	}
}

// judge decides about what lookForStrangers has found. Pages of which nothing is known are accepted if the
// database makes sense as a whole; then all of them get their seals.
func (db *DB) judge(c *conn) (err error) {
	moved, unknown := db.found.Moved, db.found.Unknown
	if len(unknown) > 0 {
		if err := c.integrity(context.Background(), db.path); err != nil {
			return err
		}
		db.log.Warn("another program has written to the database after the power was lost; it makes sense as a whole, but some pages cannot be compared with what was acknowledged last",
			logkey.Path, db.path, logkey.Count, len(unknown))
	}
	if len(moved) > 0 {
		db.log.Warn("another program has written the log into the database; its pages are what was noted of them, and are sealed anew",
			logkey.Path, db.path, logkey.Count, len(moved))
	}
	if len(moved)+len(unknown) == 0 {
		return nil
	}
	defer db.notes.Lenient(false)
	file, err := db.disk.OpenFile(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	if err := errors.Join(sealed.Seal(file, append(moved, unknown...)), file.Close()); err != nil {
		return explainPath(db.path, err)
	}
	db.found = sealed.Survey{}
	return nil
}

// takeOver notes that all is in the database, and what it looks like.
func (db *DB) takeOver(c *conn) error {
	if err := db.emptyLog(c); err != nil || db.memory != nil {
		return err
	}
	empty, err := db.logIsEmpty()
	if err != nil || !empty {
		return err // another program reads it; what is noted of the log stays
	}
	stamp, err := db.disk.Stamp(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	if err := db.witness.Settle(db.commits, stamp, false); err != nil {
		return explainPath(db.path+witnessSuffix, err)
	}
	return nil
}

// pageNumbers lists the first few of them.
func pageNumbers(pages []sealed.Page) string {
	text := "page"
	for i, p := range pages {
		if i == 5 {
			return text + ", …"
		}
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %d", p.Number)
	}
	return text
}

// stamped notes what the database looks like after a checkpoint, and notices that it was
// changed by another program before.
func (w *writer) stamped(before sealed.Stamp) {
	if w.db.memory != nil {
		return
	}
	after, err := w.db.disk.Stamp(w.db.path)
	if err != nil {
		return // the next start looks at all pages
	}
	if before != (sealed.Stamp{}) && before != w.db.witness.LastStamp() {
		w.db.notes.Notice()
	}
	w.db.witness.SetStamp(after)
}

// stamp returns what the database looks like before a checkpoint.
func (w *writer) stamp() sealed.Stamp {
	if w.db.memory != nil {
		return sealed.Stamp{}
	}
	s, err := w.db.disk.Stamp(w.db.path)
	if err != nil {
		return sealed.Stamp{}
	}
	return s
}

// settle notes at the end that the log is empty, and all of it in the database.
func (w *writer) settle() error {
	db := w.db
	if db.memory != nil {
		return nil
	}
	if err := w.tx.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	if empty, err := db.logIsEmpty(); err != nil || !empty {
		return err // another program reads; the log stays, and with it what is noted of it
	}
	stamp, err := db.disk.Stamp(db.path)
	if err != nil {
		return err
	}
	return db.witness.Settle(w.commits, stamp, true)
}

func (db *DB) logIsEmpty() (bool, error) {
	f, size, err := db.disk.Read(db.path + "-wal")
	if err != nil {
		return false, explainPath(db.path+"-wal", err)
	}
	return size == 0, f.Close()
}

// keepOnClose lets a connection leave the log as it is when it is closed.
func keepOnClose(c *conn) {
	_, _ = c.db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true)
}

// keepLog copies the log to a name of its own before anything changes it, and says where.
func (db *DB) keepLog(why string) (string, error) {
	path := db.path + "-wal"
	from, size, err := db.disk.Read(path)
	if err != nil {
		return "", explainPath(path, err)
	}
	defer func() { _ = from.Close() }() // nothing was written
	if size == 0 {
		return "", nil
	}
	kept := path + "." + why
	stamp, err := db.disk.Stamp(path)
	if err != nil {
		return "", explainPath(path, err)
	}
	if stamp != (sealed.Stamp{}) {
		kept += "-" + time.Unix(0, stamp.Changed).UTC().Format("20060102T150405.000")
	}
	to, err := db.disk.OpenFile(kept)
	if err != nil {
		return "", explainPath(kept, err)
	}
	if _, err := io.Copy(io.NewOffsetWriter(to, 0), from); err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return "", explainPath(kept, err)
	}
	return "; a copy of the log is " + kept, nil
}
