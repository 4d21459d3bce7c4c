package sqlitestate

import (
	"context"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/follow"
)

// source is a [state.Source].
type source struct {
	*follow.Source
	store *Store
}

// Set implements [state.Source].
func (s *source) Set(ctx context.Context, st state.State) (state.State, error) {
	return s.Source.Set(ctx, st, func(w *follow.Write) { s.store.db.Write(&change{w, s.store}) })
}

// change is a write under way; it implements [sqlitedb.Change].
type change struct {
	*follow.Write
	store *Store
}

// content is how many bytes weigh as much as a row.
const content = 16 << 10

// Ops implements [sqlitedb.Change].
func (c *change) Ops() int { return 1 + (len(c.Asked.Payload)+len(c.Asked.Message))/content }

// OnFull implements [sqlitedb.Spacious]. The task that makes it waits, rather than
// fail for what is no fault of its own; there are no more of them than tasks run.
func (c *change) OnFull() sqlitedb.OnFull { return sqlitedb.Kept }

// Apply implements [sqlitedb.Change].
func (c *change) Apply(tx *sqlitedb.Tx) error {
	c.News, c.Refusal = false, nil
	l, g := c.Life, c.store.ledger
	if l.Gone() {
		c.Refusal = state.ErrDeleted
		return nil
	}
	tx.Join(g)
	isNew := l.ID.Load() == 0
	id := g.IDOf(l)
	var last lastWrite
	if !isNew {
		var err error
		if last, err = c.look(tx, id); err != nil {
			return err
		}
		if last.event == c.Asked.EventID {
			return c.find(tx, id)
		}
	}
	at := g.Now()
	c.Stored, c.News = c.Asked, true
	c.Stored.Version, c.Stored.Timestamp = last.version+1, follow.Time(at)
	var added int64
	if last.version == 0 {
		added = 1
	}
	g.Note(l, added, at)
	return c.write(tx, id, at)
}

// lastWrite is what there is of a state; the zero value = nothing.
type lastWrite struct {
	version int64
	event   string
}

// look reads what there is of the state. Together with the write that follows it
// takes a third less than one statement that does both and returns the version,
// since SQLite keeps such results in a table of their own.
func (c *change) look(tx *sqlitedb.Tx, id int64) (last lastWrite, err error) {
	s := tx.Stmt("SELECT version, event_id FROM state WHERE job=? AND task=? AND tag=?").
		Int(id).Int(int64(c.Asked.TaskID)).Text(c.Asked.Tag)
	if s.Step() {
		last = lastWrite{s.ColInt(0), s.ColText(1)}
	}
	return last, s.Done()
}

// find answers a write that was made before.
func (c *change) find(tx *sqlitedb.Tx, id int64) error {
	s := tx.Stmt("SELECT " + columns + " FROM state WHERE job=? AND task=? AND tag=?").
		Int(id).Int(int64(c.Asked.TaskID)).Text(c.Asked.Tag)
	if s.Step() {
		stored, err := scan(s, c.Job.ID, id)
		if err != nil {
			c.Refusal = err
		}
		c.Stored = stored
	}
	return s.Done()
}

const (
	insert = `INSERT INTO state(status, version, at, event_id, schema_version, message, payload, sum, job, task, tag)
		VALUES(?,?,?,?,?,?,?,?,?,?,?)`
	update = `UPDATE state SET status=?, version=?, at=?, event_id=?, schema_version=?, message=?, payload=?, sum=?
		WHERE job=? AND task=? AND tag=?`
)

// write writes the state.
func (c *change) write(tx *sqlitedb.Tx, id, at int64) error {
	st, sql := &c.Stored, update
	if st.Version == 1 {
		sql = insert
	}
	return tx.Stmt(sql).
		Int(int64(st.Status)).Int(st.Version).Int(at).Text(st.EventID).Int(int64(st.SchemaVersion)).
		TextOrNull(st.Message).TextOrNull(string(st.Payload)).Int(sumOf(id, st, at)).
		Int(id).Int(int64(st.TaskID)).Text(st.Tag).Exec()
}
