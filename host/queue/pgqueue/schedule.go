package pgqueue

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// scheduleRows are the states of schedules that ticks look at. It is a [pgdb.Member].
type scheduleRows struct {
	pgdb.Table[string, scheduleRow]
}

// scheduleRow is the version of a state, and until it is written the state itself.
type scheduleRow struct {
	version       int64
	state         *record.ScheduleState
	open, waiting string // of the state
}

func (r *scheduleRows) init(db *pgdb.DB) {
	r.Table = pgdb.Table[string, scheduleRow]{
		DB: db, SQL: "SELECT name, version FROM jobhost.schedule WHERE name=ANY($1)",
		Args: func(names []string) []any { return []any{names} },
		Scan: func(rows pgx.Rows) (name string, row scheduleRow, err error) {
			err = rows.Scan(&name, &row.version)
			return name, row, err
		},
	}
}

// fire changes the state of a schedule and adds the jobs of its ticks.
func (b *batch) fire(tx *pgdb.Tx, op *record.Fire, res *record.OpResult) error {
	schedules, state := &b.image.schedules, &op.State
	version := int64(0)
	if there := schedules.Get(tx, state.Name); there != nil {
		version = there.version
	}
	if version != state.Version {
		res.Err = conflict("schedule %s was changed meanwhile: its state has version %d, not %d", state.Name, version, state.Version)
		return nil
	}
	if op.Forget {
		schedules.Delete(state.Name)
		return nil
	}
	row, err := rowOf(state)
	if err != nil {
		return err
	}
	schedules.Put(state.Name, row)
	res.Fired = make([]record.OpResult, len(op.Jobs))
	for i, job := range op.Jobs {
		if err := b.submit(tx, job, &res.Fired[i]); err != nil {
			return err
		}
	}
	return nil
}

// rowOf returns the row of a state, with its next version.
func rowOf(state *record.ScheduleState) (row scheduleRow, err error) {
	row = scheduleRow{version: state.Version + 1, state: state}
	if row.open, err = jsonText(state.Open, len(state.Open)); err == nil {
		row.waiting, err = jsonText(state.Waiting, len(state.Waiting))
	}
	if err != nil {
		return scheduleRow{}, fmt.Errorf("encode schedule %s: %w", state.Name, err)
	}
	return row, nil
}

// Flush implements [pgdb.Member].
func (r *scheduleRows) Flush(b *pgx.Batch) error {
	var gone []string
	var rows []scheduleRow
	for c := range r.Changes() {
		if c.Is == nil {
			gone = append(gone, c.Key)
		} else {
			rows = append(rows, *c.Is)
		}
	}
	if len(gone) > 0 {
		b.Queue(r.DB.SQL("DELETE FROM jobhost.schedule WHERE name=ANY($1)"), gone)
	}
	if len(rows) == 0 {
		return nil
	}
	number := func(of func(*record.ScheduleState) int64) []int64 {
		return column(rows, func(r *scheduleRow) int64 { return of(r.state) })
	}
	text := func(of func(*scheduleRow) string) []string { return column(rows, of) }
	b.Queue(r.DB.SQL(`INSERT INTO jobhost.schedule (name, version, timing, last, fired, last_job, paused_at, gone_at, open, waiting)
		SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[],
			$9::text[], $10::text[])
		ON CONFLICT (name) DO UPDATE SET version=excluded.version, timing=excluded.timing, last=excluded.last, fired=excluded.fired,
		last_job=excluded.last_job, paused_at=excluded.paused_at, gone_at=excluded.gone_at, open=excluded.open, waiting=excluded.waiting`),
		text(func(r *scheduleRow) string { return r.state.Name }), column(rows, func(r *scheduleRow) int64 { return r.version }),
		text(func(r *scheduleRow) string { return r.state.Timing }), number(func(s *record.ScheduleState) int64 { return int64(s.Last) }),
		number(func(s *record.ScheduleState) int64 { return int64(s.Fired) }), text(func(r *scheduleRow) string { return r.state.LastJob }),
		number(func(s *record.ScheduleState) int64 { return int64(s.PausedAt) }), number(func(s *record.ScheduleState) int64 { return int64(s.GoneAt) }),
		text(func(r *scheduleRow) string { return r.open }), text(func(r *scheduleRow) string { return r.waiting }))
	return nil
}

// AfterCommit implements [pgdb.Member].
func (r *scheduleRows) AfterCommit() {
	for c := range r.Changes() {
		if c.Is != nil {
			*c.Is = scheduleRow{version: c.Is.version} // the rest was needed for writing only
		}
	}
	r.Table.AfterCommit()
}
