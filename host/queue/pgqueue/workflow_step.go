package pgqueue

import (
	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// stepRows are the steps of workflows that are to be written. Transitions only read the failures of steps, so steps are written
// without having been read.
type stepRows struct {
	db       *pgdb.DB
	failures pgdb.Table[stepKey, string] // in JSON; empty = none

	// What was saved and not flushed:
	saved []stepRow
	at    map[stepKey]int // in saved
}

type stepKey struct{ workflow, step int64 }

// stepRow is a row of the table of steps.
type stepRow struct {
	stepKey
	status             string
	number, fallback   int64
	reason             string
	tasks              int64
	startedAt, endedAt int64
	failure            string
}

func (r *stepRows) init(db *pgdb.DB) {
	r.db, r.at = db, map[stepKey]int{}
	r.failures = pgdb.Table[stepKey, string]{
		DB: db,
		SQL: `SELECT workflow, step, failure FROM unnest($1::bigint[], $2::bigint[]) AS t(workflow, step)
			JOIN jobhost.workflow_step USING (workflow, step)`,
		Args: func(keys []stepKey) []any {
			return []any{column(keys, func(k *stepKey) int64 { return k.workflow }), column(keys, func(k *stepKey) int64 { return k.step })}
		},
		Scan: func(rows pgx.Rows) (k stepKey, text string, err error) {
			err = rows.Scan(&k.workflow, &k.step, &text)
			return k, text, err
		},
		Bytes: func(text *string) int { return len(*text) },
	}
}

// stepOf returns the row of a step.
func stepOf(workflow record.Key, s *record.StepRecord, failure string) stepRow {
	row := stepRow{
		stepKey: stepKey{int64(workflow), int64(s.Step)}, status: string(s.Status), number: int64(s.Number), reason: CleanText(s.Reason),
		tasks: int64(s.Tasks), startedAt: int64(s.StartedAt), endedAt: int64(s.EndedAt), failure: failure,
	}
	if s.Fallback {
		row.fallback = 1
	}
	if s.Worker {
		row.fallback |= 2
	}
	return row
}

// save adds a step or changes it.
func (r *stepRows) save(s stepRow) {
	if s.failure != "" {
		r.failures.Put(s.stepKey, s.failure)
	}
	i, again := r.at[s.stepKey]
	if !again {
		r.at[s.stepKey] = len(r.saved)
		r.saved = append(r.saved, s)
		return
	}
	// The same as the statement in flush does with an existing row.
	was := &r.saved[i]
	if was.number == s.number && s.tasks == 0 {
		s.tasks = was.tasks
	}
	if was.number == s.number && was.startedAt > 0 {
		s.startedAt = was.startedAt
	}
	if s.failure == "" {
		s.failure = was.failure
	}
	*was = s
}

func (r *stepRows) flush(b *pgx.Batch) {
	if len(r.saved) == 0 {
		return
	}
	number := func(of func(*stepRow) int64) []int64 { return column(r.saved, of) }
	text := func(of func(*stepRow) string) []string { return column(r.saved, of) }
	b.Queue(r.db.SQL(`INSERT INTO jobhost.workflow_step AS s (workflow, step, status, number, fallback, reason, tasks, started_at, ended_at, failure)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[],
			$9::bigint[], $10::text[])
		ON CONFLICT (workflow, step) DO UPDATE SET status=excluded.status, fallback=excluded.fallback, reason=excluded.reason,
			tasks=CASE WHEN excluded.tasks>0 OR s.number<>excluded.number THEN excluded.tasks ELSE s.tasks END,
			started_at=CASE WHEN s.number=excluded.number AND s.started_at>0 THEN s.started_at ELSE excluded.started_at END,
			number=excluded.number, ended_at=excluded.ended_at,
			failure=CASE WHEN excluded.failure='' THEN s.failure ELSE excluded.failure END`),
		number(func(s *stepRow) int64 { return s.workflow }), number(func(s *stepRow) int64 { return s.step }),
		text(func(s *stepRow) string { return s.status }), number(func(s *stepRow) int64 { return s.number }),
		number(func(s *stepRow) int64 { return s.fallback }), text(func(s *stepRow) string { return s.reason }),
		number(func(s *stepRow) int64 { return s.tasks }), number(func(s *stepRow) int64 { return s.startedAt }),
		number(func(s *stepRow) int64 { return s.endedAt }), text(func(s *stepRow) string { return s.failure }))
}

func (r *stepRows) forget() {
	r.saved = r.saved[:0]
	clear(r.at)
}
