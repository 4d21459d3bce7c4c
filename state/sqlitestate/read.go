package sqlitestate

import (
	"context"
	"errors"

	"github.com/jobhost/jobhost/internal/sqlitedb"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/follow"
)

// Open implements [state.Store].
func (s *Store) Open(ctx context.Context, job state.Job, tasks int, feed state.Feed) (state.Source, error) {
	src, err := s.lives.Open(ctx, job, tasks, feed, func(src *follow.Source) (found follow.Row, err error) {
		err = s.db.Read(ctx, func(r *sqlitedb.Reader) (err error) {
			if found, err = find(r, job); err != nil || found.ID == 0 || found.Marked {
				return err
			}
			return replay(r, src, found.ID)
		})
		return found, err
	})
	if err != nil {
		return nil, err
	}
	return &source{src, s}, nil
}

// find reads the row of a job.
func find(q sqlitedb.Querier, job state.Job) (found follow.Row, err error) {
	s := q.Stmt("SELECT id, tasks, deleted_at FROM state_job WHERE name=?").Text(job.Key())
	if s.Step() {
		found = follow.Row{ID: s.ColInt(0), Tasks: int(s.ColInt(1)), Marked: s.ColInt(2) != 0}
	}
	return found, s.Done()
}

// columns are those that scan reads.
const columns = "task, tag, status, version, at, event_id, schema_version, message, payload, sum"

// scan returns the state of a row of a job whose row has that id.
func scan(s *sqlitedb.Stmt, job string, id int64) (state.State, error) {
	st := state.State{
		JobID: job, TaskID: int(s.ColInt(0)), Tag: s.ColText(1), Status: int32(s.ColInt(2)), Version: s.ColInt(3),
		Timestamp: follow.Time(s.ColInt(4)), EventID: s.ColText(5), SchemaVersion: int(s.ColInt(6)),
		Message: s.ColText(7), Payload: s.ColBlob(8),
	}
	if !s.ColSum(9, sumOf(id, &st, s.ColInt(4))) {
		return st, sqlitedb.Damaged("state %s of task %d of job %s", st.Tag, st.TaskID, job)
	}
	return st, nil
}

// replayed is how many states are handed over at a time.
const replayed = 512

// replay hands the states of a job to the feed of a source.
func replay(q sqlitedb.Querier, src *follow.Source, id int64) error {
	batch := make([]state.State, 0, replayed)
	st := q.Stmt("SELECT " + columns + " FROM state WHERE job=?").Int(id)
	for st.Step() {
		one, err := scan(st, src.Job.ID, id)
		if err != nil {
			return errors.Join(err, st.Done())
		}
		batch = append(batch, one)
		if len(batch) == replayed {
			src.Tell(batch)
			batch = batch[:0]
		}
	}
	if err := st.Done(); err != nil {
		return err
	}
	src.Tell(batch)
	return nil
}

// Jobs implements [state.Store].
func (s *Store) Jobs(ctx context.Context, after string, limit int) ([]state.Info, error) {
	if s.lives.Closed() {
		return nil, state.ErrClosed
	}
	var list []state.Info
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt("SELECT name, tasks, states, created_at, changed_at, deleted_at FROM state_job WHERE name>? ORDER BY name LIMIT ?").
			Text(after).Int(int64(max(limit, 0)))
		for st.Step() {
			list = append(list, state.Info{
				Job: state.ParseKey(st.ColText(0)), Tasks: int(st.ColInt(1)), States: int(st.ColInt(2)),
				CreatedAt: follow.Time(st.ColInt(3)), ChangedAt: follow.Time(st.ColInt(4)), DeletedAt: follow.Time(st.ColInt(5)),
			})
		}
		return st.Done()
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, s.lives.Explain("list jobs with states", err)
	}
	return list, nil
}
