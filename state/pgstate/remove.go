package pgstate

import (
	"context"

	"github.com/jackc/pgx/v5"

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

// remove marks or deletes a job, and waits until that is durable.
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

// mark marks a job as deleted. A job that is followed gets a row for that.
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

// delete deletes a job. A job that is followed exists, even without a row.
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

// deleteRows deletes the rows of jobs and of their states.
func (m *image) deleteRows(s *pgdb.Session, names []string, ids []int64) error {
	m.Deleted(len(ids))
	if _, err := s.Exec(deleteJobs, names); err != nil {
		return err
	}
	_, err := s.Exec(deleteStates, ids)
	return err
}

const (
	deleteJobs   = "DELETE FROM jobhost.state_job WHERE name=ANY($1)"
	deleteStates = "DELETE FROM jobhost.state WHERE job=ANY($1)"
)

// Any reports whether any job has states. The writer calls it, within a commit.
func (s *Store) Any() bool { return s.image.Rows() > 0 || s.lives.Any() }

// Removing deletes the states of jobs, in all their runs, in the commit that deletes the jobs, and ends their feeds when it is
// durable. A job without states costs a lookup in an index, and all jobs of a commit are looked up together.
func (s *Store) Removing(tx *pgdb.Tx, ids []string) error {
	if !s.Any() {
		return nil
	}
	m := s.image
	tx.Join(m)
	if m.Unwritten(ids) && tx.Direct() == nil { // else their rows would be added after they were deleted
		return nil
	}
	m.runs.Want(tx, ids)
	for _, id := range ids {
		if runs := m.runs.Get(tx, id); runs != nil {
			m.removeRuns(runs)
		}
		for _, job := range s.lives.Rowless(id) {
			m.Doom(job)
		}
	}
	return nil
}

// runRows are the rows of all runs of a job.
type runRows struct {
	names []string
	ids   []int64
}

// initRuns says how they are read. The key of the plain run is the id; those of the others begin with the id and "~". Keys of
// other jobs may be between them.
func (m *image) initRuns() {
	m.runs = pgdb.Table[string, runRows]{
		DB: m.db,
		SQL: `SELECT t.job, j.names, j.ids FROM unnest($1::text[]) AS t(job) CROSS JOIN LATERAL (
			SELECT array_agg(name) AS names, array_agg(id) AS ids FROM (
				SELECT name, id FROM jobhost.state_job WHERE name=t.job
				UNION ALL SELECT name, id FROM jobhost.state_job WHERE name>t.job||'~' AND name<t.job||E'\x7f') r) j
			WHERE j.names IS NOT NULL`,
		Args: func(ids []string) []any { return []any{ids} },
		Scan: func(rows pgx.Rows) (id string, r runRows, err error) {
			err = rows.Scan(&id, &r.names, &r.ids)
			return id, r, err
		},
	}
}

// removeRuns removes rows with the next flush, but not those of the host's own runs, which are not the job's.
func (m *image) removeRuns(r *runRows) {
	for i, name := range r.names {
		if job := state.ParseKey(name); !job.OfHost() {
			m.Doom(job)
			m.Deleted(1)
			m.gone.names, m.gone.ids = append(m.gone.names, name), append(m.gone.ids, r.ids[i])
		}
	}
}

// flushGone deletes the rows that were removed.
func (m *image) flushGone(b *pgx.Batch) {
	if len(m.gone.ids) > 0 {
		b.Queue(m.db.SQL(deleteJobs), m.gone.names)
		b.Queue(m.db.SQL(deleteStates), m.gone.ids)
	}
}
