package sqlitestate

import (
	"context"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/follow"
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
	return s.lives.Remove(ctx, job, func(r *follow.Removal) {
		s.db.Write(&removal{Removal: r, ledger: s.ledger, how: how})
	})
}

// removal is a job to be marked or deleted; it implements [sqlitedb.Change].
type removal struct {
	*follow.Removal
	ledger *ledger
	how    func(*sqlitedb.Tx, state.Job) (there bool, err error)
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
	c.There, err = c.how(tx, c.Job)
	return err
}

// mark marks a job as deleted. One that is followed has a row then.
func (g *ledger) mark(tx *sqlitedb.Tx, job state.Job) (there bool, err error) {
	g.GiveRow(job)
	if err := g.flush(tx); err != nil {
		return false, err
	}
	err = tx.Stmt("UPDATE state_job SET deleted_at=CASE deleted_at WHEN 0 THEN ? ELSE deleted_at END WHERE name=?").
		Int(g.Now()).Text(job.Key()).Exec()
	if err != nil || tx.Changes() == 0 {
		return false, err
	}
	g.Doom(job)
	return true, nil
}

// delete deletes a job. One that is followed is there, if without a row.
func (g *ledger) delete(tx *sqlitedb.Tx, job state.Job) (there bool, err error) {
	found, err := find(tx, job)
	if err != nil || found.ID == 0 && !g.Followed(job) {
		return false, err
	}
	return true, g.deleteJob(tx, remains{job, found.ID})
}

// remains are what there is of a job that goes.
type remains struct {
	state.Job
	id int64 // of its row; 0 = it has none
}

func (g *ledger) deleteJob(tx *sqlitedb.Tx, r remains) error {
	g.Doom(r.Job)
	if r.id == 0 {
		return nil
	}
	g.Deleted(1)
	if err := tx.Stmt("DELETE FROM state_job WHERE name=?").Text(r.Key()).Exec(); err != nil {
		return err
	}
	return tx.Stmt("DELETE FROM state WHERE job=?").Int(r.id).Exec()
}

// Any reports whether there is anything to remove at all. The writer calls it,
// within a transaction.
func (s *Store) Any() bool {
	return s.ledger.Rows() > 0 || s.lives.Any()
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
	for _, job := range s.lives.Rowless(id) {
		list = append(list, remains{Job: job})
	}
	return list, nil
}
