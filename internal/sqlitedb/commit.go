package sqlitedb

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/sqlitedb/files"
	"github.com/ncruces/go-sqlite3"
)

// errRollback marks a rollback that failed: it is unknown what the connection
// would write next.
var errRollback = errors.New("roll back")

// commit makes all changes of the group durable, or finds out which ones can't be.
func (w *writer) commit(g *group) {
	if w.failure != nil {
		g.err = w.failure
		return
	}
	start := time.Now()
	err := w.try(g.changes)
	if err == nil {
		if f := w.db.opts.Observer.Commit; f != nil {
			f(g.ops, time.Since(start))
		}
		return
	}
	if isShared(err) || len(g.changes) == 1 {
		g.err = w.explain(err)
		return
	}
	// One change spoils the transaction: each gets one of its own, so that
	// only the culprit fails.
	g.errs = make([]error, len(g.changes))
	for i := range g.changes {
		if w.failure != nil {
			g.errs[i] = w.failure
		} else if err := w.try(g.changes[i : i+1]); err != nil {
			g.errs[i] = w.explain(err)
		}
	}
}

// explain returns the error for callers, and stops the database if it must be.
func (w *writer) explain(err error) error {
	if isFatal(err) {
		w.fail(err)
		return w.failure
	}
	if errors.Is(err, sqlite3.BUSY) {
		return w.explainBusy(err)
	}
	return explainWrite(err)
}

// explainBusy names the program that has kept the writer waiting.
func (w *writer) explainBusy(err error) error {
	holder := lockHolder(w.db.path)
	w.db.log.Warn("another program has locked the database; writing waits for it", logkey.Reason, holder, logkey.Path, w.db.path)
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: "the database is locked by " + holder, Cause: err,
		Hint: "end the transaction that is open there; nothing is damaged, and writing goes on by itself",
	}
}

// try makes the changes in one transaction, all or none.
func (w *writer) try(changes []Change) error {
	if w.db.memory != nil {
		w.db.gate.Lock()
		defer w.db.gate.Unlock()
	}
	w.tx.forgetFault()
	before := w.db.notes.Last()
	err := w.tx.Stmt("BEGIN IMMEDIATE").Exec()
	for i := 0; err == nil && i < len(changes); i++ {
		err = w.apply(changes[i])
	}
	for i := 0; err == nil && i < len(w.tx.members); i++ {
		err = w.tx.members[i].BeforeCommit(&w.tx)
	}
	if err == nil {
		err = w.end()
	}
	if err != nil {
		if err = w.rollback(w.tx.cause(err)); !isFatal(err) {
			w.db.notes.Undo(before)
		}
	}
	for _, m := range w.tx.members {
		if err == nil {
			m.AfterCommit()
		} else {
			m.AfterRollback()
		}
	}
	clear(w.tx.members)
	w.tx.members = w.tx.members[:0]
	return err
}

// end commits the transaction, and notes that before callers are answered.
func (w *writer) end() error {
	err := w.tx.Stmt("COMMIT").Exec()
	if err == nil {
		w.db.notes.Acknowledge(!w.db.opts.Relaxed)
	}
	return err
}

// apply makes one change; a panic is its error.
func (w *writer) apply(c Change) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.Apply(&w.tx)
}

// rollback undoes the transaction because of err, unless SQLite did already.
func (w *writer) rollback(err error) error {
	w.tx.reset()
	if w.tx.db.GetAutocommit() {
		return err
	}
	if again := w.tx.Stmt("ROLLBACK").Exec(); again != nil {
		return fmt.Errorf("%w: %w, after: %w", errRollback, again, err)
	}
	return err
}

// The WAL is written back into the database at walSoft pages, SQLite's own
// default, as far as no reader needs the old ones. When readers overlap so
// that there is never a moment without one, it would grow forever: at
// walHard times as many pages (64 MB) reads are held back until it has started
// over.
const (
	walSoft = 1000
	walHard = 16
)

// checkpoint keeps the WAL short, after the callers were notified.
func (w *writer) checkpoint() {
	if w.walPages < w.softAt || w.failure != nil {
		return
	}
	hard := w.walPages >= w.hardAt
	pages := w.walPages
	w.walPages, w.short.owed = 0, false
	mode := sqlite3.CHECKPOINT_PASSIVE
	if hard {
		mode = sqlite3.CHECKPOINT_RESTART
		w.db.gate.Lock()
		defer w.db.gate.Unlock()
		// Another program's reader may stay as long as it likes; it is waited for in vain only once in a while.
		_ = w.tx.db.BusyTimeout(100 * time.Millisecond)
		defer func() { _ = w.tx.db.BusyTimeout(busyTimeout) }()
	}
	before := w.stamp()
	w.tx.forgetFault()
	_, _, err := w.tx.db.WALCheckpoint("main", mode)
	if err != nil {
		err = w.tx.cause(err)
	}
	w.stamped(before)
	switch {
	case err == nil:
		w.hardAt = w.softAt * walHard
	case isFull(err) && !(w.db.opts.Relaxed && errors.Is(err, files.ErrSync)):
		w.walPages, w.short.owed = pages, true // all of it is still in the log
		w.beginFull(fmt.Errorf("write the log back: %w", err))
	case isFatal(err) || isFull(err):
		// The commits in the log have not been synced before, and may never be.
		w.fail(err)
	case hard:
		w.hardAt = pages + w.softAt*walHard
		w.db.log.Warn("the write-ahead log grows: another program reads the database", logkey.Count, pages, logkey.Error, err)
	}
}
