package pgdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/internal/term"
)

// commit makes a group durable, even if the connection is lost on the way. An error means that it was not applied, or that
// the term is over.
func (w *Writer) commit(g *group) error {
	t := w.term
	for {
		if err := t.Err(); err != nil {
			return err
		}
		err := w.plan(g)
		sent := err == nil
		if sent {
			err = w.flush()
		}
		if err == nil {
			w.committed()
			return nil
		}
		again, err := w.recover(err)
		if err == nil && !again {
			w.committed()
			return nil
		}
		if errors.Is(err, errUnclear) {
			if err = t.Err(); sent {
				err = fmt.Errorf("%w (%s)", term.ErrUnknown, err.Error()) // one error for the caller, not two
			}
		}
		if undone := w.undo(); undone != nil && !isConnLost(undone) {
			err = errors.Join(err, undone)
		}
		if err != nil {
			return err
		}
	}
}

// committed is called when a commit is durable.
func (w *Writer) committed() {
	w.term.acknowledged.Store(w.n)
	for _, m := range w.tx.members {
		m.AfterCommit()
	}
}

// errUnclear is why it is not known what became of a commit: the term has ended before that was found out.
var errUnclear = errors.New("the outcome of a commit is not known")

// recover decides what is done about a commit that was not confirmed. Without an error it is durable, unless it has to
// be made again; the error is errUnclear if that could not be found out.
func (w *Writer) recover(err error) (again bool, _ error) {
	t := w.term
	switch {
	case isFence(err):
		if f := t.db.cfg.Observer.Fenced; f != nil {
			f()
		}
		w.checkForLostCommits()
		t.over("another host has taken over")
		return false, t.Err()
	case t.Err() != nil:
		return false, errUnclear
	case w.guessedWrong(err):
		return true, nil
	case !isConnLost(err) && !t.conn.IsClosed():
		return false, w.refused(err)
	}
	n := w.n + 1
	applied, err := w.resolve(n)
	if err == nil && applied {
		w.n = n
	}
	if f := t.db.cfg.Observer.Resolved; f != nil && err == nil {
		f(applied)
	}
	return !applied, err
}

// read reads the rows that are missing from the images, in one message.
func (w *Writer) read() error {
	b := &pgx.Batch{}
	if !w.tx.open {
		b.Queue(planSettings)
	}
	for _, m := range w.tx.members {
		m.Read(b)
	}
	return w.term.conn.SendBatch(w.term.ctx, b).Close()
}

// planSettings set up the planner for the writer's statements, which all find rows by the keys that they are given. The
// planner can't know how many keys there are, and must not read a whole table instead. Generic plans are just as good, and
// planning a statement with many tables for each set of keys would take longer than running it. Compiling a plan never
// pays off: see [withoutJIT]. The settings end with the transaction, so that a pooler may reuse the connection.
const planSettings = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true)`

// keptBatches is how many rows the table of batches keeps at least. Only the last one is ever looked up.
const keptBatches = 1000

// fence queues the statements that a commit begins with. Under another epoch the inner query finds no row, and the NULL
// violates the column's constraint, which aborts the transaction: see isFence. The same happens when the batch before this
// one is missing, as on a server that has lost it and to which a pooler has switched.
func (w *Writer) fence(b *pgx.Batch) {
	db, n := w.term.db, w.n+1
	b.Queue(planSettings)
	b.Queue(db.SQL(`INSERT INTO jobhost.batch (shard, n, epoch)
		VALUES ($1, $2, (SELECT epoch FROM jobhost.term WHERE shard=$1 AND epoch=$3
			AND ($4=0 OR EXISTS (SELECT FROM jobhost.batch WHERE shard=$1 AND n=$4)) FOR SHARE))`), db.cfg.Shard, n, w.term.Epoch(), w.n)
	if n%keptBatches == 0 {
		b.Queue(db.SQL("DELETE FROM jobhost.batch WHERE shard=$1 AND n<$2"), db.cfg.Shard, n-keptBatches)
	}
}

// flush sends the fence and the members' writes in one message. PostgreSQL runs a message in one transaction, unless a
// change has begun one already: see [Tx.Direct].
func (w *Writer) flush() error {
	if len(w.tx.members) == 0 && !w.tx.open {
		return nil
	}
	b := &pgx.Batch{}
	if !w.tx.open {
		w.fence(b)
	}
	for _, m := range w.tx.members {
		if err := m.Flush(b); err != nil {
			return err
		}
	}
	if w.tx.open {
		b.Queue("COMMIT")
	}
	err := w.term.conn.SendBatch(w.term.ctx, b).Close()
	if err == nil {
		w.n++
	}
	return err
}

// isTemporary reports whether a server could not write, but may later. The statement was not carried out.
func isTemporary(err error) bool {
	switch state := stateOf(err); state {
	case readOnlySQL, lockNotAvailable, queryCanceled, "40001", "40P01":
		return true
	default:
		return len(state) == 5 && (state[:2] == "53" || state[:2] == "58") // resources, I/O
	}
}

// refused returns the error of a transaction that the server has aborted. Unless the reason is temporary or in the data,
// the image must differ from the database, so the term ends: the next one reads everything again.
func (w *Writer) refused(err error) error {
	switch {
	case isTemporary(err):
		return newTooShort(err)
	case isBadData(err):
		return &badData{&jobhost.Error{Code: jobhost.CodeInvalid, Message: "write to PostgreSQL: " + reasonOf(err)}}
	}
	w.term.over("a commit was refused: " + reasonOf(err))
	if stateOf(err) == "" { // the server has made it, and done something else than it should have
		return errUnclear
	}
	return w.term.Err()
}

// badData is the error of a commit in which a change has data that the server rejects.
type badData struct{ error }

func (e *badData) Unwrap() error { return e.error }

// commitEach commits a group, and if the server rejects the data of a change, each change by itself.
func (w *Writer) commitEach(g *group) {
	g.err = w.commit(g)
	var bad *badData
	if !errors.As(g.err, &bad) || len(g.changes) == 1 {
		return
	}
	g.err, g.errs = nil, make([]error, len(g.changes))
	for i := range g.changes {
		one := &group{changes: g.changes[i : i+1]}
		if g.errs[i] = w.commit(one); g.errs[i] == nil {
			g.errs[i] = one.errOf(0)
		}
	}
}

// resolve finds out whether a batch was committed whose connection was lost. It can only know once the old session can't
// commit any more. Raising the epoch makes sure of that: it waits for the transaction that holds the fence, or ends it, and
// fences out what comes later.
func (w *Writer) resolve(n int64) (applied bool, err error) {
	for {
		if !w.reconnect() {
			return false, errUnclear
		}
		applied, err = w.lookUp(n)
		switch {
		case err == nil, errors.Is(err, ErrTermOver):
			return applied, err
		case w.term.Err() != nil:
			return false, errUnclear
		}
		w.term.db.cfg.Logger.Warn("look up the outcome of a commit", logkey.Error, err)
	}
}

func (w *Writer) lookUp(n int64) (applied bool, err error) {
	t := w.term
	backend := t.backend.Load()
	taken, err := t.raise(t.ctx, Leader{Epoch: t.Epoch(), Host: t.db.cfg.Host, backend: backend})
	if err != nil {
		return false, err
	}
	var last *int64
	err = t.conn.QueryRow(t.ctx, t.db.SQL(`SELECT max(n), coalesce(bool_or(n=$2 AND epoch<=$3), false) FROM jobhost.batch WHERE shard=$1`),
		t.db.cfg.Shard, n, t.Epoch()).Scan(&last, &applied)
	switch {
	case err != nil:
		return false, err
	case !taken:
		t.over("another host has taken over")
		if applied {
			return true, nil
		}
		return false, t.Err()
	case w.lacksCommits(last):
		return false, t.Err()
	}
	return applied, nil
}

// checkForLostCommits ends the term if the database has lost acknowledged commits.
func (w *Writer) checkForLostCommits() {
	t := w.term
	if t.conn.PgConn().TxStatus() != 'I' {
		if _, err := t.conn.Exec(t.ctx, "ROLLBACK"); err != nil {
			return
		}
	}
	var last *int64
	err := t.conn.QueryRow(t.ctx, t.db.SQL("SELECT max(n) FROM jobhost.batch WHERE shard=$1"), t.db.cfg.Shard).Scan(&last)
	if err == nil {
		w.lacksCommits(last)
	}
}

// lacksCommits reports whether the last batch in the database is not the last one that was acknowledged, and ends the
// term if so.
func (w *Writer) lacksCommits(last *int64) bool {
	if w.n == 0 || last != nil && *last >= w.n {
		return false
	}
	w.term.lostCommits(w.n, last)
	return true
}

// lostCommits ends the term because the database had acknowledged commits up to a number, and has none after last; nil = it
// has none at all.
func (t *Term) lostCommits(acknowledged int64, last *int64) {
	t.lost.Do(func() {
		lost := acknowledged
		if last != nil {
			lost -= *last
		}
		t.db.cfg.Logger.Error("the database has lost acknowledged commits: did a replica that is not synchronous replace it?",
			"acknowledged", acknowledged, "lost", lost)
		if f := t.db.cfg.Observer.Lost; f != nil {
			f(lost)
		}
		t.over(fmt.Sprintf("the database has lost %d acknowledged commits, up to number %d", lost, acknowledged))
	})
}

// reconnect replaces the writer's connection. It tries until the term is over, and reports whether it is not.
func (w *Writer) reconnect() bool {
	t := w.term
	_ = t.conn.Close(context.Background())
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		conn, err := t.db.connectToWrite(t.ctx)
		if err == nil {
			t.conn = conn
			// If this is another server, the pools must not keep using the former one.
			t.db.pool.Reset()
			t.db.send.Reset()
			return true
		}
		if t.Err() != nil {
			return false
		}
		t.db.cfg.Logger.Warn("connect to the database again", logkey.Error, err)
		if !sleep(t.ctx, wait) {
			return false
		}
	}
}
