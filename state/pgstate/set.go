package pgstate

import (
	"context"

	"github.com/jobhost/jobhost/internal/pgdb"
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
	return s.Source.Set(ctx, st, func(w *follow.Write) { s.store.writer.Write(&change{w, s.store.image}) })
}

// change is a write of a state; it implements [pgdb.Change].
type change struct {
	*follow.Write
	image *image
}

// Size implements [pgdb.Change].
func (c *change) Size() (ops, bytes int) { return 1, len(c.Asked.Payload) + len(c.Asked.Message) }

// Patient implements [pgdb.Patient]. The task that makes it waits, rather than fail.
func (c *change) Patient() bool { return true }

// Apply implements [pgdb.Change].
func (c *change) Apply(tx *pgdb.Tx) error {
	c.News, c.Refusal = false, nil
	l, m := c.Life, c.image
	if l.Gone() {
		c.Refusal = state.ErrDeleted
		return nil
	}
	tx.Join(m)
	last := c.last(tx)
	switch {
	case tx.Missed():
		return nil
	case last != nil && last.event == c.Asked.EventID:
		c.repeat(tx, last)
		return nil
	case last == nil:
		last = &stateRow{}
	}
	key, at := c.key(m.IDOf(l)), m.Now()
	c.Stored, c.News = c.Asked, true
	c.Stored.Version, c.Stored.Timestamp = last.version+1, follow.Time(at)
	var added int64
	if last.version == 0 {
		added = 1
	}
	m.Note(l, added, at)
	m.rows.Put(key, stateRow{c.Stored.Version, c.Stored.EventID, &c.Stored})
	return nil
}

func (c *change) key(id int64) stateKey { return stateKey{id, c.Asked.TaskID, c.Asked.Tag} }

// last returns the last write of the state; nil = there is none, or it has to be read first.
func (c *change) last(tx *pgdb.Tx) *stateRow {
	id := c.Life.ID.Load()
	switch {
	case id == 0:
		return nil
	case c.Life.New(): // there is nothing to read
		return c.image.rows.Known(c.key(id))
	default:
		return c.image.rows.Get(tx, c.key(id))
	}
}

// repeat answers a repeated write, which was made before.
func (c *change) repeat(tx *pgdb.Tx, last *stateRow) {
	there := last.state
	if there == nil {
		there = c.image.whole.Get(tx, c.key(c.Life.ID.Load()))
	}
	if there != nil {
		c.Stored = *there
		c.Stored.JobID = c.Job.ID
	}
}

// Done implements [pgdb.Change].
func (c *change) Done(err error) { c.Write.Done(explainWrite(err)) }
