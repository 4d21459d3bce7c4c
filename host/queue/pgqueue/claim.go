package pgqueue

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// Claim implements [record.Store]. It writes nothing: the term is the lease of all open tasks.
func (s *Store) Claim(ctx context.Context, worker string, after record.Place, limit int) (claimed []record.Claimed, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = s.db.ReadLong(ctx, func(r *pgdb.Session) error {
		claimed = nil
		return r.Numbers(func(n []int64) {
			claimed = append(claimed, record.Claimed{
				Place: record.Place{Key: record.Key(n[0]), ReadyAt: record.Millis(n[1])},
				Level: int(n[2]), Token: n[3], Index: int(n[4]), Attempt: int(n[5]), Group: record.Group(n[6]), Deadline: record.Millis(n[7]),
			})
		}, claimTasks, worker, after.ReadyAt, after.Key, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("claim tasks: %w", err)
	}
	return claimed, nil
}

const claimTasks = `SELECT seq, ready_at, level, token, idx, attempt, lane_group, deadline FROM jobhost.task
	WHERE worker=(SELECT id FROM jobhost.worker WHERE name=$1) AND status=0 AND (ready_at, seq)>($2, $3) ORDER BY ready_at, seq LIMIT $4`

// Load implements [record.Store].
func (s *Store) Load(ctx context.Context, keys []record.Key) (bodies []record.Body, err error) {
	err = s.db.Ask(ctx, func(b *pgx.Batch) {
		bodies = nil
		jobs := make(map[record.Key]*record.JobSpec)
		b.Queue(s.db.SQL(loadJobs), keys).Query(func(rows pgx.Rows) error {
			var job storedJob
			_, err := pgx.ForEachRow(rows, job.into(&job.Payload), func() error {
				r, err := job.record()
				if err == nil {
					jobs[r.Key] = &r.JobSpec
				}
				return err
			})
			return err
		})
		b.Queue(s.db.SQL(loadTasks), keys).Query(func(rows pgx.Rows) error {
			var body record.Body
			var job record.Key
			var retention int64
			_, err := pgx.ForEachRow(rows, []any{
				&body.Key, &job, &body.Index, &body.Token, &body.Attempt, &body.Deadline, &retention, &body.Suspect, &body.Payload,
			}, func() error {
				if body.Job = jobs[job]; body.Job == nil {
					return fmt.Errorf("the job of task %d is not there", body.Key)
				}
				body.Job.Retention = millis(retention)
				bodies = append(bodies, body)
				return nil
			})
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("load tasks: %w", err)
	}
	return bodies, nil
}

// The queries of Load. OFFSET 0 makes the planner look up rows one by one, even without statistics.
const (
	loadJobs = `SELECT j.* FROM (
			SELECT DISTINCT job FROM unnest($1::bigint[]) AS k(key)
			CROSS JOIN LATERAL (SELECT job FROM jobhost.task WHERE seq=key AND status=0 OFFSET 0) t) t
		CROSS JOIN LATERAL (SELECT ` + jobColumns + `, payload FROM jobhost.job JOIN jobhost.worker ON worker.id=job.worker WHERE seq=t.job OFFSET 0) j`
	loadTasks = `SELECT t.* FROM unnest($1::bigint[]) WITH ORDINALITY AS k(key, n)
		CROSS JOIN LATERAL (SELECT seq, job, idx, token, attempt, deadline, retention_ms, suspect, data
			FROM jobhost.task LEFT JOIN jobhost.item ON item.task=seq WHERE seq=key AND status=0 OFFSET 0) t ORDER BY n`
)
