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

// witnessBytes is its size: room for a log of 400 MB. Of a longer one less is known.
const witnessBytes = 2 << 20

// openWitness reads what was noted of the log by the process that had the database before.
func (db *DB) openWitness() error {
	path := db.path + witnessSuffix
	file, err := db.disk.OpenWitness(path)
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

// lookForStrangers compares all pages with their seals if another program has written to the database
// while no host had it. What it has moved there from the log is known by what was noted of the log. Notes
// are lacking after a loss of power only; then pages of which nothing is known are judged later.
func (db *DB) lookForStrangers() error {
	if db.memory != nil || !db.witness.Knows() {
		return nil
	}
	if !db.noLog {
		return db.recognize(db.witness.SameBoot()) // the pages in the log are written and sealed anyway
	}
	complete, err := db.notes.Recall()
	if err != nil {
		return explainPath(db.path, err)
	}
	if err := db.recognize(complete); err != nil {
		return err
	}
	stamp, err := db.disk.Stamp(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	if db.witness.Settled() && stamp == db.witness.Stamp() && stamp != (sealed.Stamp{}) {
		db.notes.Forget()
		return nil
	}
	file, err := db.disk.OpenFile(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	var lost []sealed.Page
	db.found, err = db.notes.Look(file)
	if err == nil && db.found.Missing == 0 {
		lost, err = db.notes.Lost(file, complete)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return explainPath(db.path, err)
	}
	if len(lost) > 0 {
		return db.errLost(len(lost))
	}
	if db.found.Missing > 0 {
		return &jobhost.Error{
			Code:    jobhost.CodeUnavailable,
			Message: fmt.Sprintf("%s is damaged: its last %d pages are missing", db.path, db.found.Missing),
			Hint:    "restore a backup. " + hintRepair,
		}
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

func (db *DB) errLost(pages int) error {
	return &jobhost.Error{
		Code:    jobhost.CodeUnavailable,
		Message: fmt.Sprintf("%s lacks commits that were acknowledged (%d pages are older), and the log that has them, %[1]s-wal, is gone", db.path, pages),
		Hint: "look for that log; or, if you have put an older copy in its place, remove " + db.path + witnessSuffix +
			"; else restore a backup. " + hintRepair,
	}
}

// recognize refuses a database that is not the one of the witness, or whose first page is damaged.
func (db *DB) recognize(complete bool) (err error) {
	file, err := db.disk.OpenFile(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	other, err := db.notes.IsOther(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return explainPath(db.path, err)
	}
	if !other || !complete {
		return nil // after a loss of power the witness may not know the first page
	}
	return &jobhost.Error{
		Code:    jobhost.CodeUnavailable,
		Message: db.path + " is not the database that was here: its first page is damaged, or another program has changed or replaced it",
		Hint: "if you have put another copy in its place, remove " + db.path + witnessSuffix + " and " + db.path + "-wal; else restore a backup. " +
			hintRepair,
	}
}

// judge decides about what lookForStrangers has found. Pages of which nothing is known are accepted if the
// database makes sense as a whole; then all of them get their seals.
func (db *DB) judge(c *conn) (err error) {
	moved, unknown := db.found.Moved, db.found.Unknown
	if len(unknown) > 0 {
		if err := db.makesSense(c); err != nil {
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

// makesSense checks a database as a whole, and what its rows hold, which SQLite
// can't tell.
func (db *DB) makesSense(c *conn) error {
	if err := c.integrity(context.Background()); err != nil {
		return explainOpen(db.path, err)
	}
	var damaged Damages
	if err := c.checkRows(context.Background(), db.opts.Schemas, damaged.Add); err != nil {
		return explainOpen(db.path, err)
	}
	if damaged.Rows == 0 {
		return nil
	}
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable,
		Message: fmt.Sprintf("another program has written to %s after the power was lost, and %d rows of it are not what was written; the first: %s",
			db.path, damaged.Rows, damaged.First[0]),
		Hint: "restore a backup. " + hintRepair,
	}
}

// takeOver notes that all is in the database, and what it looks like.
func (db *DB) takeOver(c *conn) error {
	if err := db.emptyLog(c); err != nil || db.memory != nil {
		return err
	}
	empty, err := db.logIsEmpty()
	if db.opts.Relaxed || empty {
		db.witness.Relax(db.opts.Relaxed)
	}
	if err != nil || !empty {
		return err // another program reads it; what is noted of the log stays
	}
	db.notes.Forget()
	return db.settle(false)
}

// settle notes that the log is empty, and all of it in the database; closed is whether it stays so.
func (db *DB) settle(closed bool) error {
	stamp, err := db.disk.Stamp(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	file, err := db.disk.OpenFile(db.path)
	if err != nil {
		return explainPath(db.path, err)
	}
	if err := errors.Join(db.witness.Settle(file, stamp, closed), file.Close()); err != nil {
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

// stamp returns what the database looks like before a checkpoint, of which the witness must know.
func (w *writer) stamp() sealed.Stamp {
	if w.db.memory != nil {
		return sealed.Stamp{}
	}
	w.db.witness.Sync()
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
	if err := db.dropLog(w.tx.conn); err != nil {
		return err
	}
	if empty, err := db.logIsEmpty(); err != nil || !empty {
		return err // another program reads; the log stays, and with it what is noted of it
	}
	return db.settle(true)
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

// keepLog copies the log to a name of its own before anything changes it, and returns that.
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
	_, err = io.Copy(io.NewOffsetWriter(to, 0), from)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return "", explainPath(kept, err)
	}
	return kept, nil
}
