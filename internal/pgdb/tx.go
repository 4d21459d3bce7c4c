package pgdb

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Member takes part in commits. It keeps an image: rows as they are in the database, and as they will be after the commit.
// The writer alone calls its methods.
type Member interface {
	// Read queues reads of the rows that were asked for and are missing from the image.
	Read(b *pgx.Batch)
	// Flush queues the statements that write the changes of the image to the database.
	Flush(b *pgx.Batch) error
	// Flushed is called when these statements were executed and others follow in the same transaction, which may change any
	// row. The member must not flush its changes again, and must forget all rows.
	Flushed()
	// AfterCommit is called when the commit is durable; AfterRollback restores the image as it was before.
	AfterCommit()
	AfterRollback()
}

// Tx is the commit that a change takes part in, while [Change.Apply] runs.
type Tx struct {
	writer     *Writer
	members    []Member
	incomplete bool  // rows are missing: all changes will be applied again
	missed     bool  // rows are missing that the change, or its part that is applied, has asked for
	open       bool  // a transaction was begun: see Direct
	first      bool  // nothing was read yet for the changes
	err        error // of a statement

	part     int  // number of the part that is applied, counted over all changes
	direct   int  // the last part that called Direct
	scouting bool // this run only notes which rows are asked for after calls of Direct
	recalled int  // the last part that called Direct for which the rows asked for after it were read
}

// afterDirects is a table that has noted which rows are asked for after calls of Direct.
type afterDirects interface {
	// recall asks for those between a part that calls it and the next one that does.
	recall(direct int)
	// unnote forgets them.
	unnote()
}

// Join makes m a member of the commit, unless it is.
func (tx *Tx) Join(m Member) {
	for _, other := range tx.members {
		if other == m {
			return
		}
	}
	tx.members = append(tx.members, m)
}

// Miss is how a member reports that a row is missing from its image. True = it was read at once: look again.
func (tx *Tx) Miss() bool {
	if !tx.open {
		tx.incomplete, tx.missed = true, true
		return false
	}
	if tx.err == nil {
		tx.recall()
		tx.err = tx.writer.read()
	}
	return tx.err == nil
}

// recall asks for all rows that will be needed until the next part calls Direct, so that one message reads them. It waits
// until the part that called Direct is over, since that may still change them.
func (tx *Tx) recall() {
	if tx.part == tx.direct || tx.recalled == tx.direct {
		return
	}
	tx.recalled = tx.direct
	for _, t := range tx.writer.later {
		t.recall(tx.direct)
	}
}

// Missed reports whether a row is missing that this change has asked for. What Apply does is then discarded, so it may
// return. Rows that earlier changes of the commit lack don't count: each change should ask for its rows in the same
// round.
func (tx *Tx) Missed() bool { return tx.missed || tx.err != nil }

// Part begins a part of a change, such as one of several operations. Missed is about the current part.
func (tx *Tx) Part() {
	tx.part++
	tx.missed = false
}

// Direct returns the commit's transaction, for rare changes that have to search for rows. The images are flushed into it
// first. Each statement waits for the server, so a commit with such changes is no longer one message. Nil = the change will
// be applied again: Apply has to return.
//
// Afterwards the images are empty. So that the rest of the commit isn't read row by row, the first call returns nil and
// starts a run that only notes which rows are asked for later; they are read together once the part is over.
func (tx *Tx) Direct() *Session {
	if tx.err != nil {
		tx.missed = true
		return nil
	}
	tx.direct = tx.part
	w := tx.writer
	if !tx.open && (tx.incomplete || !w.scouted) {
		tx.scout()
		return nil
	}
	if tx.err = w.flushInto(); tx.err != nil {
		return nil
	}
	for _, m := range tx.members {
		m.Flushed()
	}
	return &Session{db: w.term.db, ctx: w.term.ctx, conn: w.term.conn}
}

// scout begins to note which rows are asked for.
func (tx *Tx) scout() {
	if !tx.scouting {
		tx.writer.unnote()
	}
	tx.missed, tx.scouting = true, true
}

// unnote forgets which rows are asked for after calls of Direct.
func (w *Writer) unnote() {
	for _, t := range w.later {
		t.unnote()
	}
	w.later = w.later[:0]
}

// flushInto begins a transaction unless there is one, and flushes the images into it.
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

// plan applies the changes of a group, and reads the rows that they need, until none is missing. Each round costs a round
// trip and another run of all changes, so after maxRounds the rows that are still missing are read one by one.
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
		case !failed && !w.tx.incomplete && !w.tx.scouting:
			return nil
		}
		incomplete := w.tx.incomplete
		if err := w.undo(); err != nil {
			return err
		}
		if w.scouted = !failed && !incomplete; !incomplete {
			continue // without the change that failed, or with direct changes carried out
		}
		rounds++
		if err := w.read(); err != nil {
			return err
		}
	}
}

// undo restores the images as they were before the commit, and rolls back its transaction if there is one.
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

// apply applies the changes that have not failed yet, and reports whether one fails now. Errors don't count while rows are
// missing or the run is scouting.
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
		case err == nil || w.tx.incomplete || w.tx.scouting:
		case isConnLost(err) || isTemporary(err) || isFence(err):
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
