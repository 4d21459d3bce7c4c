package sqlitestate

import (
	"context"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
)

// source is a [state.Source].
type source struct {
	store *Store
	life  *life
	tasks int // set before anybody has it

	closed   bool // protected by the life's lock, with the writes under way
	underWay int
}

// Tasks implements [state.Source].
func (s *source) Tasks() int { return s.tasks }

// Close implements [state.Source].
func (s *source) Close() error {
	if s.leave() {
		s.store.leave(s.life)
	}
	return nil
}

// leave ends the source, and reports whether it is over with it: writes that are
// under way hold the life.
func (s *source) leave() (over bool) {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	over = !s.closed && s.underWay == 0
	s.closed = true
	delete(s.life.feeds, s)
	return over
}

// Set implements [state.Source].
func (s *source) Set(ctx context.Context, st state.State) (state.State, error) {
	if ctx.Err() != nil {
		return state.State{}, context.Cause(ctx)
	}
	if err := s.begin(); err != nil {
		return state.State{}, err
	}
	st.JobID = s.life.job.ID
	if st.EventID == "" {
		st.EventID = s.store.eventID()
	}
	c := &change{source: s, asked: st, done: make(chan error, 1)}
	s.store.db.Write(c)
	select {
	case err := <-c.done:
		switch {
		case err != nil:
			return state.State{}, s.store.explain("set state", err)
		case c.refusal != nil:
			return state.State{}, c.refusal
		}
		return c.stored, nil
	case <-ctx.Done():
		return state.State{}, context.Cause(ctx)
	}
}

// begin counts a write, which Done ends.
func (s *source) begin() error {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	switch {
	case s.life.ended != nil:
		return s.life.ended
	case s.closed:
		return state.ErrClosed
	}
	s.underWay++
	return nil
}

// change is a write under way; it implements [sqlitedb.Change].
type change struct {
	*source
	asked   state.State
	stored  state.State
	isNews  bool
	refusal error
	done    chan error
}

// content is how many bytes weigh as much as a row.
const content = 16 << 10

// Ops implements [sqlitedb.Change].
func (c *change) Ops() int { return 1 + (len(c.asked.Payload)+len(c.asked.Message))/content }

// OnFull implements [sqlitedb.Spacious]. The task that makes it waits, rather than
// fail for what is no fault of its own; there are no more of them than tasks run.
func (c *change) OnFull() sqlitedb.OnFull { return sqlitedb.Kept }

// Apply implements [sqlitedb.Change].
func (c *change) Apply(tx *sqlitedb.Tx) error {
	c.isNews, c.refusal = false, nil
	l, g := c.life, c.store.ledger
	if l.gone {
		c.refusal = state.ErrDeleted
		return nil
	}
	tx.Join(g)
	id, isNew := g.idOf(l)
	var last lastWrite
	if !isNew {
		var err error
		if last, err = c.look(tx, id); err != nil {
			return err
		}
		if last.event == c.asked.EventID {
			return c.find(tx, id)
		}
	}
	at := g.now()
	c.stored, c.isNews = c.asked, true
	c.stored.Version, c.stored.Timestamp = last.version+1, timeOf(at)
	var added int64
	if last.version == 0 {
		added = 1
	}
	g.note(l, added, at)
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
		Int(id).Int(int64(c.asked.TaskID)).Text(c.asked.Tag)
	if s.Step() {
		last = lastWrite{s.ColInt(0), s.ColText(1)}
	}
	return last, s.Done()
}

// find answers a write that was made before.
func (c *change) find(tx *sqlitedb.Tx, id int64) error {
	s := tx.Stmt("SELECT " + columns + " FROM state WHERE job=? AND task=? AND tag=?").
		Int(id).Int(int64(c.asked.TaskID)).Text(c.asked.Tag)
	if s.Step() {
		stored, err := scan(s, c.life.job.ID, id)
		if err != nil {
			c.refusal = err
		}
		c.stored = stored
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
	st, sql := &c.stored, update
	if st.Version == 1 {
		sql = insert
	}
	return tx.Stmt(sql).
		Int(int64(st.Status)).Int(st.Version).Int(at).Text(st.EventID).Int(int64(st.SchemaVersion)).
		TextOrNull(st.Message).TextOrNull(string(st.Payload)).Int(sumOf(id, st, at)).
		Int(id).Int(int64(st.TaskID)).Text(st.Tag).Exec()
}

// Done implements [sqlitedb.Change].
func (c *change) Done(err error) {
	if c.finish(err == nil && c.isNews) {
		c.store.leave(c.life)
	}
	c.done <- err
}

// finish tells the feeds, and reports whether the source is over with this.
func (c *change) finish(isNews bool) (over bool) {
	c.life.mu.Lock()
	defer c.life.mu.Unlock()
	if isNews {
		c.life.tellLocked(c.stored)
	}
	c.underWay--
	return c.closed && c.underWay == 0
}
