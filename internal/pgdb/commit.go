package pgdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
)

// commit makes a group durable, whatever happens to the connection meanwhile.
func (w *Writer) commit(g *group) error {
	for {
		if err := w.term.Err(); err != nil {
			return err
		}
		err := w.plan(g)
		if err == nil {
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
		if undone := w.undo(); undone != nil && !isLost(undone) {
			err = errors.Join(err, undone)
		}
		if err != nil {
			return err
		}
	}
}

// committed ends a commit that is durable.
func (w *Writer) committed() {
	w.term.acknowledged.Store(w.n)
	for _, m := range w.tx.members {
		m.AfterCommit()
	}
}

// recover decides what is done about a commit that was not confirmed. Without an error it is durable, unless it has to
// be made again.
func (w *Writer) recover(err error) (again bool, _ error) {
	t := w.term
	switch {
	case isFence(err):
		if f := t.db.cfg.Observer.Fenced; f != nil {
			f()
		}
		w.lookForLost()
		t.over("another host has taken over")
		return false, t.Err()
	case t.Err() != nil:
		return false, t.Err()
	case w.guessedWrong(err):
		return true, nil
	case !isLost(err) && !t.conn.IsClosed():
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

// read sends all reads for missing rows in one message.
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

// planSettings are those of the writer's statements, in the transaction that they begin. All find rows by keys that they
// are given, and the planner, which doesn't know how many these are, must not read a whole table instead; nor need
// it think about it each time: a plan for the keys at hand is none the better, and to make it for a statement with many
// tables takes longer than to run it. What it takes for a long statement must not be compiled: see [withoutJIT]. The
// settings don't outlive the transaction, so that a pooler may give the connection to others.
const planSettings = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true)`

// keptBatches is how many numbers of batches are kept at least. Only the last can be asked for.
const keptBatches = 1000

// fence queues the statements that a commit begins with. Under another epoch the inner query finds no row, and NULL is
// refused. So it is without the batch before this one: a pooler may go to another server between two of them, which has
// lost it.
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

// flush sends what the members have to write behind the fence, in one message, which is one transaction: it begins with
// the first statement and ends with the message, unless one was begun for a change that reads and writes directly.
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

// isShort reports whether a server can't write now, but may later. What it was to do was not done.
func isShort(err error) bool {
	switch state := stateOf(err); state {
	case readOnlySQL, lockNotAvailable, queryCanceled, "40001", "40P01":
		return true
	default:
		return len(state) == 5 && (state[:2] == "53" || state[:2] == "58") // resources, I/O
	}
}

// refused decides about a transaction that the server has aborted. If it isn't for want of room, the image is not what
// the database has: the next term reads it anew.
func (w *Writer) refused(err error) error {
	switch {
	case isShort(err):
		return newTooShort(err)
	case isData(err):
		return &badData{&jobhost.Error{Code: jobhost.CodeInvalid, Message: "write to PostgreSQL: " + reasonOf(err)}}
	}
	w.term.over("a commit was refused: " + reasonOf(err))
	return w.term.Err()
}

// badData is why a commit was refused in which a change has data that the server doesn't take.
type badData struct{ error }

func (e *badData) Unwrap() error { return e.error }

// commitEach commits a group, and if the data of one change spoil it each change by itself.
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

// resolve finds out whether the batch whose connection was lost was committed. The answer can only be trusted once
// the old session can't commit any more, and raising the epoch makes sure of that: it waits for, or ends, the
// transaction that holds the fence, and what comes later is refused.
func (w *Writer) resolve(n int64) (applied bool, err error) {
	for {
		if err := w.reconnect(); err != nil {
			return false, err
		}
		applied, err = w.lookUp(n)
		switch {
		case err == nil, errors.Is(err, ErrTermOver):
			return applied, err
		case w.term.Err() != nil:
			return false, w.term.Err()
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

// lookForLost ends the term with this reason if the database has lost acknowledged commits.
func (w *Writer) lookForLost() {
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
	w.term.lacks(w.n, last)
	return true
}

// lacks ends a term of which the database had acknowledged commits up to a number, and has none after the last; nil = it
// has none at all.
func (t *Term) lacks(acknowledged int64, last *int64) {
	t.lost.Do(func() {
		lost := acknowledged
		if last != nil {
			lost -= *last
		}
		t.db.cfg.Logger.Error("the database has lost acknowledged commits: did a standby without synchronous replication take over?",
			"acknowledged", acknowledged, "lost", lost)
		if f := t.db.cfg.Observer.Lost; f != nil {
			f(lost)
		}
		t.over(fmt.Sprintf("the database has lost %d acknowledged commits, up to number %d", lost, acknowledged))
	})
}

// reconnect replaces the writer's connection. It tries until the term is over.
func (w *Writer) reconnect() error {
	t := w.term
	_ = t.conn.Close(context.Background())
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		conn, err := t.db.connectToWrite(t.ctx)
		if err == nil {
			t.conn = conn
			// If this is another server, the other connections must not go on with the former one.
			t.db.pool.Reset()
			t.db.send.Reset()
			return nil
		}
		if t.Err() != nil {
			return t.Err()
		}
		t.db.cfg.Logger.Warn("connect to the database again", logkey.Error, err)
		if !sleep(t.ctx, wait) {
			return t.Err()
		}
	}
}
