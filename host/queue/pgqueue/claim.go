package pgqueue

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// Claim implements [record.Store]. It writes nothing: the term is the lease of all open tasks.
func (s *Store) Claim(ctx context.Context, worker string, after record.Place, limit int) (claimed []record.Claimed, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = s.db.Read(ctx, func(r *pgdb.Session) error {
		claimed = nil
		var c record.Claimed
		return r.Each([]any{&c.Key, &c.ReadyAt, &c.Level, &c.Token, &c.Index, &c.Attempt, &c.Group, &c.Deadline}, func() error {
			claimed = append(claimed, c)
			return nil
		}, `SELECT seq, ready_at, level, token, idx, attempt, lane_group, deadline FROM jobhost.task
			WHERE worker=(SELECT id FROM jobhost.worker WHERE name=$1) AND status=0 AND (ready_at, seq)>($2, $3) ORDER BY ready_at, seq LIMIT $4`,
			worker, after.ReadyAt, after.Key, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("claim tasks: %w", err)
	}
	return claimed, nil
}

// Load implements [record.Store].
func (s *Store) Load(ctx context.Context, keys []record.Key) (bodies []record.Body, err error) {
	numbers := make([]int64, len(keys))
	for i, key := range keys {
		numbers[i] = int64(key)
	}
	err = s.db.Ask(ctx, func(b *pgx.Batch) {
		bodies = nil
		jobs := make(map[record.Key]*record.JobSpec)
		b.Queue(s.db.SQL("SELECT "+jobColumns+`, payload FROM jobhost.job JOIN jobhost.worker ON worker.id=job.worker
			WHERE seq=ANY(SELECT job FROM jobhost.task WHERE seq=ANY($1) AND status=0)`), numbers).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				r, err := scanJob(rows, true)
				if err != nil {
					return err
				}
				jobs[r.Key] = &r.JobSpec
			}
			return rows.Err()
		})
		b.Queue(s.db.SQL(`SELECT seq, job, idx, token, attempt, deadline, retention_ms, suspect, data
			FROM unnest($1::bigint[]) WITH ORDINALITY AS k(key, n) JOIN jobhost.task ON seq=key LEFT JOIN jobhost.item ON item.task=seq
			WHERE status=0 ORDER BY n`), numbers).Query(func(rows pgx.Rows) error {
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

// jobColumns are those of a job joined with its worker, but for its payload.
const jobColumns = `seq, job.id, name, tasks, priority, max_attempts, timeout_ns, created_at, ready_at, digest, entry, content_type,
	labels, length(payload), options, ref`

// scanJob returns the job of a row with the columns above, and the payload if it is among them.
func scanJob(rows pgx.Rows, payload bool) (*record.JobRecord, error) {
	r := &record.JobRecord{}
	var labels, options string
	var digest []byte
	into := []any{
		&r.Key, &r.ID, &r.Worker, &r.JobSpec.Tasks, &r.Priority, &r.MaxAttempts, &r.Timeout, &r.CreatedAt, &r.ReadyAt, &digest, &r.Entry, &r.ContentType,
		&labels, &r.PayloadSize, &options, &r.Ref,
	}
	if payload {
		into = append(into, &r.Payload)
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	copy(r.Digest[:], digest)
	size, err := r.SetOptions(options)
	if err != nil {
		return nil, err
	}
	if size != nil {
		r.PayloadSize = int(min(*size, math.MaxInt))
	}
	return r, r.SetLabels(labels)
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func errNoJob(id string) error {
	return &jobhost.Error{Code: jobhost.CodeNotFound, Message: fmt.Sprintf("there is no job %s", id)}
}

func conflict(format string, args ...any) error {
	return &jobhost.Error{Code: jobhost.CodeConflict, Message: fmt.Sprintf(format, args...)}
}
