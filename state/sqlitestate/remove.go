package sqlitestate

import (
	"context"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
)

// Mark implements [state.Store].
func (s *Store) Mark(ctx context.Context, job state.Job) error {
	return s.remove(ctx, job, s.ledger.mark)
}

// Delete implements [state.Store].
func (s *Store) Delete(ctx context.Context, job state.Job) error {
	return s.remove(ctx, job, s.ledger.delete)
}

// remove waits for a removal.
func (s *Store) remove(ctx context.Context, job state.Job, how func(*sqlitedb.Tx, state.Job) (bool, error)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.isClosed() {
		return state.ErrClosed
	}
	c := &removal{job: job, ledger: s.ledger, how: how, done: make(chan error, 1)}
	s.db.Write(c)
	select {
	case err := <-c.done:
		switch {
		case err != nil:
			return s.explain("delete states", err)
		case !c.there:
			return state.NotFound(job)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// removal is a job to be marked or deleted; it implements [sqlitedb.Change].
type removal struct {
	job    state.Job
	ledger *ledger
	how    func(*sqlitedb.Tx, state.Job) (there bool, err error)
	there  bool
	done   chan error
}

// Ops implements [sqlitedb.Change].
func (c *removal) Ops() int { return 1 }

// OnFull implements [sqlitedb.Spacious].
func (c *removal) OnFull() sqlitedb.OnFull { return sqlitedb.Tried }

// Apply implements [sqlitedb.Change].
func (c *removal) Apply(tx *sqlitedb.Tx) (err error) {
	tx.Join(c.ledger)
	if err := c.ledger.flush(tx); err != nil {
		return err
	}
	c.there, err = c.how(tx, c.job)
	return err
}

// Done implements [sqlitedb.Change].
func (c *removal) Done(err error) { c.done <- err }

// doom marks the life of a job that is being deleted, or a new one.
func (g *ledger) doom(job state.Job) {
	l := g.store.join(job)
	if l.gone {
		g.store.leave(l)
		return
	}
	l.gone = true
	g.gone = append(g.gone, l)
}

// followed reports whether a job is followed, which is there then, if without
// states.
func (g *ledger) followed(job state.Job) bool {
	l := g.store.join(job)
	defer g.store.leave(l)
	return !l.gone && l.size() > 0
}

// mark marks a job as deleted. One that is followed has a row then.
func (g *ledger) mark(tx *sqlitedb.Tx, job state.Job) (there bool, err error) {
	l := g.store.join(job)
	defer g.store.leave(l)
	if l.id.Load() == 0 && !l.gone && l.size() > 0 {
		g.idOf(l)
		g.note(l, 0, g.now())
		if err := g.flush(tx); err != nil {
			return false, err
		}
	}
	err = tx.Stmt("UPDATE state_job SET deleted_at=CASE deleted_at WHEN 0 THEN ? ELSE deleted_at END WHERE name=?").
		Int(g.now()).Text(job.Key()).Exec()
	if err != nil || tx.Changes() == 0 {
		return false, err
	}
	g.doom(job)
	return true, nil
}

// delete deletes a job. One that is followed is there, if without a row.
func (g *ledger) delete(tx *sqlitedb.Tx, job state.Job) (there bool, err error) {
	found, err := find(tx, job)
	if err != nil || found.id == 0 && !g.followed(job) {
		return false, err
	}
	return true, g.deleteJob(tx, remains{job, found.id})
}

// remains are what there is of a job that goes.
type remains struct {
	state.Job
	id int64 // of its row; 0 = it has none
}

func (g *ledger) deleteJob(tx *sqlitedb.Tx, r remains) error {
	g.doom(r.Job)
	if r.id == 0 {
		return nil
	}
	g.rows--
	if err := tx.Stmt("DELETE FROM state_job WHERE name=?").Text(r.Key()).Exec(); err != nil {
		return err
	}
	return tx.Stmt("DELETE FROM state WHERE job=?").Int(r.id).Exec()
}

// Any reports whether there is anything to remove at all. The writer calls it,
// within a transaction.
func (s *Store) Any() bool {
	if s.ledger.rows > 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lives) > 0
}

// Removing deletes the states of jobs that are being deleted in a transaction, in
// all their runs, and ends their feeds after the commit. A job without states
// costs it a look at an index.
func (s *Store) Removing(tx *sqlitedb.Tx, ids []string) error {
	if !s.Any() {
		return nil
	}
	g := s.ledger
	tx.Join(g)
	if err := g.flush(tx); err != nil {
		return err
	}
	for _, id := range ids {
		list, err := s.remainsOf(tx, id)
		if err != nil {
			return err
		}
		for _, r := range list {
			if err := g.deleteJob(tx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// remainsOf returns what there is of a job and its runs: rows, and lives without
// one. Keys of other jobs may lie between that of the plain run and those of the
// others, which begin with the id and "~". Those of the host's own runs aren't the job's.
func (s *Store) remainsOf(tx *sqlitedb.Tx, id string) (list []remains, err error) {
	for _, st := range []*sqlitedb.Stmt{
		tx.Stmt("SELECT name, id FROM state_job WHERE name=?").Text(id),
		tx.Stmt("SELECT name, id FROM state_job WHERE name>? AND name<?").Text(id + "~").Text(id + "\x7f"),
	} {
		for st.Step() {
			if r := (remains{state.ParseKey(st.ColText(0)), st.ColInt(1)}); !r.OfHost() {
				list = append(list, r)
			}
		}
		if err := st.Done(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lives[id] {
		if l.id.Load() == 0 && !l.job.OfHost() {
			list = append(list, remains{Job: l.job})
		}
	}
	return list, nil
}
