package pgqueue

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// What Job asks about the job of an id. Failures have keys of their own, so they are found by a range of tasks.
const (
	jobByID   = `SELECT ` + jobColumns + `, ` + parentColumns + `, payload FROM ` + jobTables + ` WHERE job.id=$1`
	tasksByID = `SELECT ` + shownColumns + ` FROM jobhost.task
		WHERE seq=ANY(ARRAY(SELECT generate_series(seq, seq+tasks-1) FROM jobhost.job WHERE id=$1)) ORDER BY seq`
	failuresByID = `SELECT record FROM jobhost.failure
		WHERE task>=(SELECT seq FROM jobhost.job WHERE id=$1) AND task<(SELECT seq+tasks FROM jobhost.job WHERE id=$1) ORDER BY seq`
)

// Job implements [record.Reader], with one message.
func (s *Store) Job(ctx context.Context, id string) (stored record.JobRecord, err error) {
	if !storable(id) {
		return record.JobRecord{}, errNoJob(id)
	}
	err = s.db.Ask(ctx, func(b *pgx.Batch) {
		stored = record.JobRecord{}
		b.Queue(s.db.SQL(jobByID), id).Query(func(rows pgx.Rows) error {
			var row storedJob
			_, err := pgx.ForEachRow(rows, row.into(append(row.intoParent(), &row.Payload)...), func() error {
				r, err := row.record()
				if err == nil {
					stored = *r
				}
				return err
			})
			return err
		})
		b.Queue(s.db.SQL(tasksByID), id).Query(func(rows pgx.Rows) error {
			var task storedTask
			_, err := pgx.ForEachRow(rows, task.into(), func() error {
				task.addTo(&stored)
				return nil
			})
			return err
		})
		b.Queue(s.db.SQL(failuresByID), id).Query(func(rows pgx.Rows) error {
			var text string
			_, err := pgx.ForEachRow(rows, []any{&text}, func() error {
				var f jobhost.Failure
				if err := json.Unmarshal([]byte(text), &f); err != nil {
					return fmt.Errorf("failure of job %s: %w", id, err)
				}
				stored.Failures = append(stored.Failures, f)
				return nil
			})
			return err
		})
	})
	if err == nil && stored.Key == 0 {
		err = errNoJob(id)
	}
	if err != nil {
		return record.JobRecord{}, fmt.Errorf("read job: %w", err)
	}
	stored.EndedAt = endOf(stored.Tasks)
	return stored, nil
}

// ask runs a query of one statement, and calls fn for each row, which was scanned into the variables. begin is called
// before, more than once if the connection is lost.
func (s *Store) ask(ctx context.Context, begin func(), into []any, fn func() error, sql string, args ...any) error {
	return s.db.Ask(ctx, func(b *pgx.Batch) {
		begin()
		b.Queue(s.db.SQL(sql), args...).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, into, fn)
			return err
		})
	})
}

// Logs implements [record.Reader].
func (s *Store) Logs(ctx context.Context, job record.Key) (logs []record.LogRecord, err error) {
	var l record.LogRecord
	err = s.ask(ctx, func() { logs = nil }, []any{&l.Task, &l.Attempt, &l.Dropped, &l.Text}, func() error {
		logs = append(logs, l)
		return nil
	}, logsByJob, job)
	if err != nil {
		return nil, fmt.Errorf("read logs: %w", err)
	}
	return logs, nil
}

const logsByJob = `SELECT idx, attempt, dropped, text FROM jobhost.log
	WHERE task>=$1 AND task<(SELECT seq+tasks FROM jobhost.job WHERE seq=$1) ORDER BY seq`

// Counts implements [record.Reader].
func (s *Store) Counts(ctx context.Context) (counts map[string]record.StatusCounts, err error) {
	var name string
	var status record.Status
	var n int64
	err = s.ask(ctx, func() { counts = make(map[string]record.StatusCounts) }, []any{&name, &status, &n}, func() error {
		c := counts[name]
		c[status] = n
		counts[name] = c
		return nil
	}, "SELECT name, status, n FROM jobhost.tally JOIN jobhost.worker ON worker.id=tally.worker WHERE n<>0")
	if err != nil {
		return nil, fmt.Errorf("read counts: %w", err)
	}
	return counts, nil
}

// Newest implements [record.Reader].
func (s *Store) Newest(ctx context.Context) (at record.Millis, err error) {
	err = s.ask(ctx, func() { at = 0 }, []any{&at}, func() error { return nil }, "SELECT created_at FROM jobhost.job ORDER BY seq DESC LIMIT 1")
	if err != nil {
		return 0, fmt.Errorf("read the newest job: %w", err)
	}
	return at, nil
}

// Notes implements [record.Reader].
func (s *Store) Notes(ctx context.Context) (notes map[string]string, err error) {
	var name, text string
	err = s.ask(ctx, func() { notes = make(map[string]string) }, []any{&name, &text}, func() error {
		notes[name] = text
		return nil
	}, "SELECT name, text FROM jobhost.note")
	if err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	return notes, nil
}
