package pgstate

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/follow"
)

// Open implements [state.Store].
func (s *Store) Open(ctx context.Context, job state.Job, tasks int, feed state.Feed) (state.Source, error) {
	src, err := s.lives.Open(ctx, job, tasks, feed, func(src *follow.Source) (follow.Row, error) { return s.replay(ctx, src) })
	if err != nil {
		return nil, err
	}
	return &source{src, s}, nil
}

// replay sends the states of a job, unless it is marked as deleted, to the feed of a source, and returns the job's row.
func (s *Store) replay(ctx context.Context, src *follow.Source) (found follow.Row, err error) {
	key := src.Job.Key()
	err = s.db.Ask(ctx, func(b *pgx.Batch) {
		found = follow.Row{}
		b.Queue(s.db.SQL("SELECT id, tasks, deleted_at<>0 FROM jobhost.state_job WHERE name=$1"), key).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&found.ID, &found.Tasks, &found.Marked}, func() error { return nil })
			return err
		})
		b.Queue(s.db.SQL("SELECT "+columns+" FROM jobhost.state s WHERE job=(SELECT id FROM jobhost.state_job WHERE name=$1 AND deleted_at=0)"), key).
			Query(func(rows pgx.Rows) error { return tell(src, rows) })
	})
	return found, err
}

// replayed is how many states are sent to a feed at a time.
const replayed = 512

// tell sends states to the feed of a source.
func tell(src *follow.Source, rows pgx.Rows) error {
	var batch []state.State
	for rows.Next() {
		st, err := scan(rows)
		if err != nil {
			return err
		}
		st.JobID = src.Job.ID
		if batch = append(batch, st); len(batch) == replayed {
			src.Tell(batch)
			batch = batch[:0]
		}
	}
	src.Tell(batch)
	return rows.Err()
}

// Jobs implements [state.Store].
func (s *Store) Jobs(ctx context.Context, after string, limit int) (list []state.Info, err error) {
	if s.lives.Closed() {
		return nil, state.ErrClosed
	}
	err = s.db.Read(ctx, func(r *pgdb.Session) error {
		list = nil
		var name string
		var info state.Info
		var created, changed, deleted int64
		return r.Each([]any{&name, &info.Tasks, &info.States, &created, &changed, &deleted}, func() error {
			info.Job = state.ParseKey(name)
			info.CreatedAt, info.ChangedAt, info.DeletedAt = follow.Time(created), follow.Time(changed), follow.Time(deleted)
			list = append(list, info)
			return nil
		}, "SELECT name, tasks, states, created_at, changed_at, deleted_at FROM jobhost.state_job WHERE name>$1 ORDER BY name LIMIT $2", after, max(limit, 0))
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, s.lives.Explain("list jobs with states", err)
	}
	return list, nil
}
