package pgdb

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Member keeps an image: rows as they are, and as they will be. This host is the only one that writes, so rows that
// were read stay true until it changes them. Its methods are called by the writer only.
type Member interface {
	// Read queues reads for the rows that were missed, which add them to the image.
	Read(b *pgx.Batch)
	// Flush queues the statements that make the rows of the database those of the image.
	Flush(b *pgx.Batch) error
	// Flushed is called when the statements were executed, and others follow in the same transaction, which may change
	// any row: what was flushed must not be flushed again, and what the image knows of rows is to be read anew.
	Flushed()
	// AfterCommit is called when the commit is durable, AfterRollback when the image is to be as it was before it.
	AfterCommit()
	AfterRollback()
}

// Tx is a commit in the making, within [Change.Apply].
type Tx struct {
	writer  *Writer
	members []Member
	lacks   bool  // rows are missing: all changes will be applied again
	missed  bool  // rows are missing that the change, or its part that is applied, has asked for
	open    bool  // a transaction was begun: see Direct
	first   bool  // nothing was read yet for the changes
	err     error // of a statement

	part     int  // number of the part that is applied, counted over all changes
	direct   int  // the last part that has called Direct
	scouting bool // Direct was called and did nothing, to find out what comes after it
	recalled int  // the part that has called Direct for which what comes after it was read
}

// afterDirects is a table of an image that has noted which rows are looked at after calls of Direct.
type afterDirects interface {
	// recall asks for those between a part that calls it and the next one that does.
	recall(direct int)
	// unnote forgets them.
	unnote()
}

// Join makes m a member of the commit; joining again changes nothing.
func (tx *Tx) Join(m Member) {
	for _, other := range tx.members {
		if other == m {
			return
		}
	}
	tx.members = append(tx.members, m)
}

// Miss says that a row is missing from the image of a member. True = it was read at once: look again.
func (tx *Tx) Miss() bool {
	if !tx.open {
		tx.lacks, tx.missed = true, true
		return false
	}
	if tx.err == nil {
		tx.recall()
		tx.err = tx.writer.read()
	}
	return tx.err == nil
}

// recall asks for all rows that are looked at until the next part calls Direct, so that one message reads them. The part
// that has called it may still change them.
func (tx *Tx) recall() {
	if tx.part == tx.direct || tx.recalled == tx.direct {
		return
	}
	tx.recalled = tx.direct
	for _, t := range tx.writer.later {
		t.recall(tx.direct)
	}
}

// Missed reports whether a row is missing that the change has asked for, so that what Apply does is thrown away: it may
// return. It says nothing about what earlier changes of the commit lack, since each should come to ask for its rows
// in the same round.
func (tx *Tx) Missed() bool { return tx.missed || tx.err != nil }

// Part begins a part of a change, such as one operation of several: Missed is about what it asks for.
func (tx *Tx) Part() {
	tx.part++
	tx.missed = false
}

// Direct returns the commit's transaction, for changes that are rare and look at rows which an image can't know of.
// What the images have is flushed into it first. Each statement waits for the server, so a commit with such changes is
// no longer one message. Nil = the change will be applied again: Apply has to return.
//
// The images know nothing after it. So that what follows in the commit isn't read row by row, the first call only finds
// out which rows that is about, and they are read together once the part is over.
func (tx *Tx) Direct() *Session {
	if tx.err != nil {
		tx.missed = true
		return nil
	}
	tx.direct = tx.part
	w := tx.writer
	if !tx.open && (tx.lacks || !w.scouted) {
		tx.scout()
		return nil
	}
	if tx.err = w.flushInto(); tx.err != nil {
		return nil
	}
	for _, m := range tx.members {
		m.Flushed()
	}
	return &Session{db: w.term.db, ctx: w.term.ctx, on: w.term.conn}
}

// scout begins to note which rows are looked at.
func (tx *Tx) scout() {
	if !tx.scouting {
		tx.writer.unnote()
	}
	tx.missed, tx.scouting = true, true
}

// unnote forgets which rows come after calls of Direct.
func (w *Writer) unnote() {
	for _, t := range w.later {
		t.unnote()
	}
	w.later = w.later[:0]
}

// flushInto begins a transaction, if that was not done, and flushes the images into it.
func (w *Writer) flushInto() error {
	b := &pgx.Batch{}
	if !w.tx.open {
		b.Queue("BEGIN")
		w.fence(b)
	}
	for _, m := range w.tx.members {
		if err := m.Flush(b); err != nil {
			return err
		}
	}
	w.tx.open = true
	if b.Len() == 0 {
		return nil
	}
	return w.term.conn.SendBatch(w.term.ctx, b).Close()
}

// plan applies the changes of a group, and reads what they need until nothing is missing. Each round costs an answer of
// the server and a run of all changes, so after some of them the rows that are still missing are read one by one.
func (w *Writer) plan(g *group) error {
	w.scouted = false
	w.unnote()
	for rounds := 0; ; {
		w.tx = Tx{writer: w, members: w.tx.members[:0], first: rounds == 0}
		if rounds == maxRounds {
			if err := w.flushInto(); err != nil {
				return err
			}
		}
		failed := w.apply(g)
		switch {
		case w.tx.err != nil:
			return w.tx.err
		case !failed && !w.tx.lacks && !w.tx.scouting:
			return nil
		}
		lacks := w.tx.lacks
		if err := w.undo(); err != nil {
			return err
		}
		if w.scouted = !failed && !lacks; !lacks {
			continue // without the one that has failed, or with what there is to be done directly
		}
		rounds++
		if err := w.read(); err != nil {
			return err
		}
	}
}

// undo makes the images what they were before the commit, and ends its transaction if it is open.
func (w *Writer) undo() error {
	for _, m := range w.tx.members {
		if w.tx.open {
			m.Flushed() // it may have read rows that the transaction had changed
		}
		m.AfterRollback()
	}
	w.tx.open = false
	if conn := w.term.conn; !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		_, err := conn.Exec(w.term.ctx, "ROLLBACK")
		return err
	}
	return nil
}

// apply applies the changes that have not failed, and reports whether one fails now. Errors while rows are missing
// mean nothing, nor do those behind a call of Direct that did nothing.
func (w *Writer) apply(g *group) (failed bool) {
	for i, c := range g.changes {
		if g.errOf(i) != nil {
			continue
		}
		w.tx.Part()
		err := applyOne(c, &w.tx)
		switch {
		case w.tx.err != nil:
			return false
		case err == nil || w.tx.lacks || w.tx.scouting:
		case isLost(err) || isShort(err) || isFence(err):
			w.tx.err = err // which has nothing to do with this change
			return false
		default:
			if g.errs == nil {
				g.errs = make([]error, len(g.changes))
			}
			g.errs[i] = err
			return true
		}
	}
	return false
}

func applyOne(c Change, tx *Tx) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.Join(err, fmt.Errorf("apply a change: panic: %v", v))
		}
	}()
	return c.Apply(tx)
}
