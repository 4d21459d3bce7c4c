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

const upsert = `INSERT INTO state(job, task, tag, status, version, at, event_id, schema_version, message, payload)
	VALUES(?,?,?,?,1,?,?,?,?,?)
	ON CONFLICT DO UPDATE SET status=excluded.status, version=version+1, at=excluded.at, event_id=excluded.event_id,
		schema_version=excluded.schema_version, message=excluded.message, payload=excluded.payload
		WHERE event_id<>excluded.event_id
	RETURNING version`

// Apply implements [sqlitedb.Change].
func (c *change) Apply(tx *sqlitedb.Tx) error {
	c.isNews, c.refusal = false, nil
	l, g := c.life, c.store.ledger
	if l.gone {
		c.refusal = state.ErrDeleted
		return nil
	}
	tx.Join(g)
	id, at, st := g.idOf(l), g.now(), &c.asked
	s := tx.Stmt(upsert).
		Int(id).Int(int64(st.TaskID)).Text(st.Tag).Int(int64(st.Status)).Int(at).Text(st.EventID).
		Int(int64(st.SchemaVersion)).TextOrNull(st.Message).TextOrNull(string(st.Payload))
	if !s.Step() {
		if err := s.Done(); err != nil {
			return err
		}
		return c.find(tx, id)
	}
	c.stored, c.isNews = *st, true
	c.stored.Version, c.stored.Timestamp = s.ColInt(0), timeOf(at)
	if err := s.Done(); err != nil {
		return err
	}
	var added int64
	if c.stored.Version == 1 {
		added = 1
	}
	g.note(l, added, at)
	return nil
}

// find answers a write that was made before.
func (c *change) find(tx *sqlitedb.Tx, id int64) error {
	s := tx.Stmt("SELECT " + columns + " FROM state WHERE job=? AND task=? AND tag=?").
		Int(id).Int(int64(c.asked.TaskID)).Text(c.asked.Tag)
	if s.Step() {
		c.stored = scan(s, c.life.job.ID)
	}
	return s.Done()
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
