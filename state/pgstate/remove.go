package pgstate

import (
	"context"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/follow"
)

// Mark implements [state.Store].
func (s *Store) Mark(ctx context.Context, job state.Job) error {
	return s.remove(ctx, job, s.image.mark)
}

// Delete implements [state.Store].
func (s *Store) Delete(ctx context.Context, job state.Job) error {
	return s.remove(ctx, job, s.image.delete)
}

// remove waits for a removal.
func (s *Store) remove(ctx context.Context, job state.Job, how func(*pgdb.Tx, state.Job) (bool, error)) error {
	return s.lives.Remove(ctx, job, func(r *follow.Removal) {
		s.writer.Write(&removal{Removal: r, image: s.image, how: how})
	})
}

// removal is a job to be marked or deleted; it implements [pgdb.Change].
type removal struct {
	*follow.Removal
	image *image
	how   func(*pgdb.Tx, state.Job) (there bool, err error)
}

// Size implements [pgdb.Change].
func (c *removal) Size() (ops, bytes int) { return 1, 0 }

// Apply implements [pgdb.Change].
func (c *removal) Apply(tx *pgdb.Tx) (err error) {
	tx.Join(c.image)
	c.There, err = c.how(tx, c.Job)
	return err
}

// Done implements [pgdb.Change].
func (c *removal) Done(err error) { c.Removal.Done(explainWrite(err)) }

// mark marks a job as deleted. One that is followed has a row then.
func (m *image) mark(tx *pgdb.Tx, job state.Job) (there bool, err error) {
	m.GiveRow(job)
	s := tx.Direct()
	if s == nil {
		return false, nil
	}
	n, err := s.Exec("UPDATE jobhost.state_job SET deleted_at=CASE deleted_at WHEN 0 THEN $1 ELSE deleted_at END WHERE name=$2", m.Now(), job.Key())
	if err != nil || n == 0 {
		return false, err
	}
	m.Doom(job)
	return true, nil
}

// delete deletes a job. One that is followed is there, if without a row.
func (m *image) delete(tx *pgdb.Tx, job state.Job) (there bool, err error) {
	s := tx.Direct()
	if s == nil {
		return false, nil
	}
	var id int64
	found, err := s.One([]any{&id}, "SELECT id FROM jobhost.state_job WHERE name=$1", job.Key())
	if err != nil || !found && !m.Followed(job) {
		return false, err
	}
	m.Doom(job)
	if !found {
		return true, nil
	}
	return true, m.deleteRows(s, []string{job.Key()}, []int64{id})
}

// deleteRows deletes jobs and their states.
func (m *image) deleteRows(s *pgdb.Session, names []string, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	m.Deleted(len(ids))
	if _, err := s.Exec("DELETE FROM jobhost.state_job WHERE name=ANY($1)", names); err != nil {
		return err
	}
	_, err := s.Exec("DELETE FROM jobhost.state WHERE job=ANY($1)", ids)
	return err
}

// Any reports whether there is anything to remove at all. The writer calls it,
// within a commit.
func (s *Store) Any() bool { return s.image.Rows() > 0 || s.lives.Any() }

// Removing deletes the states of jobs that are being deleted in a commit, in all their runs, and ends their feeds when
// it is durable. A job without states costs it a look at an index.
//
// Keys of other jobs may lie between that of the plain run and those of the others, which begin with the id and "~".
// Those of the host's own runs aren't the job's.
func (s *Store) Removing(tx *pgdb.Tx, ids []string) error {
	if !s.Any() {
		return nil
	}
	m := s.image
	tx.Join(m)
	session := tx.Direct()
	if session == nil {
		return nil
	}
	var names []string
	var rows []int64
	var name string
	var row int64
	err := session.Each([]any{&name, &row}, func() error {
		if job := state.ParseKey(name); !job.OfHost() {
			m.Doom(job)
			names, rows = append(names, name), append(rows, row)
		}
		return nil
	}, `SELECT j.name, j.id FROM unnest($1::text[]) AS t(job), LATERAL (
			SELECT name, id FROM jobhost.state_job WHERE name=t.job
			UNION ALL SELECT name, id FROM jobhost.state_job WHERE name>t.job||'~' AND name<t.job||E'\x7f') j`, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		for _, job := range s.lives.Rowless(id) {
			m.Doom(job)
		}
	}
	return m.deleteRows(session, names, rows)
}
