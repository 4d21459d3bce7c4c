package sqlitequeue

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// ScheduleSchema returns the table of the schedules' states.
func ScheduleSchema() sqlitedb.Schema {
	return sqlitedb.Schema{Name: "schedule", Steps: []string{schedule1, scheduleSums}, Check: checker(scheduleRows)}
}

// schedule1 is the first version: see queue.ScheduleState. open and waiting are
// lists in JSON, NULL when they are empty.
const schedule1 = `
CREATE TABLE schedule(
	name      TEXT PRIMARY KEY,
	version   INTEGER NOT NULL,
	timing    TEXT NOT NULL,
	last      INTEGER NOT NULL,
	fired     INTEGER NOT NULL,
	last_job  TEXT NOT NULL,
	paused_at INTEGER NOT NULL,
	gone_at   INTEGER NOT NULL,
	open      TEXT,
	waiting   TEXT
) WITHOUT ROWID`

// fire changes the state of a schedule and adds the jobs of its ticks.
func (l *ledger) fire(tx *sqlitedb.Tx, op *record.Fire, res *record.OpResult) error {
	state := &op.State
	s := tx.Stmt("SELECT version FROM schedule WHERE name=?").Text(state.Name)
	version := int64(0)
	if s.Step() {
		version = s.ColInt(0)
	}
	if err := s.Done(); err != nil {
		return err
	}
	if version != state.Version {
		res.Err = conflict("schedule %s was changed meanwhile: its state has version %d, not %d", state.Name, version, state.Version)
		return nil
	}
	if op.Forget {
		return tx.Stmt("DELETE FROM schedule WHERE name=?").Text(state.Name).Exec()
	}
	if err := putSchedule(tx, state); err != nil {
		return err
	}
	res.Fired = make([]record.OpResult, len(op.Jobs))
	for i, job := range op.Jobs {
		text, err := jobTexts(job)
		if err != nil {
			return err
		}
		if err := l.submit(tx, job, text, &res.Fired[i]); err != nil {
			return err
		}
	}
	return nil
}

func putSchedule(tx *sqlitedb.Tx, state *record.ScheduleState) error {
	open, err := textOf(state.Open, len(state.Open))
	if err != nil {
		return err
	}
	waiting, err := textOf(state.Waiting, len(state.Waiting))
	if err != nil {
		return err
	}
	return tx.Stmt(`INSERT OR REPLACE INTO
		schedule(name, version, timing, last, fired, last_job, paused_at, gone_at, open, waiting, sum)
		VALUES(?,?,?,?,?,?,?,?,?,?,?)`).
		Text(state.Name).Int(state.Version + 1).Text(state.Timing).Int(int64(state.Last)).
		Int(int64(state.Fired)).Text(state.LastJob).Int(int64(state.PausedAt)).Int(int64(state.GoneAt)).
		TextOrNull(open).TextOrNull(waiting).Int(scheduleSum(state, state.Version+1, open, waiting)).Exec()
}

// textOf writes a list or map of n entries as JSON, an empty one as "".
func textOf(v any, n int) (string, error) {
	if n == 0 {
		return "", nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// Schedules returns the states of all schedules, by name.
func (s *Store) Schedules(ctx context.Context) ([]record.ScheduleState, error) {
	var states []record.ScheduleState
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt(selectSchedules)
		for st.Step() {
			state, err := scanSchedule(st)
			if err != nil {
				return err
			}
			states = append(states, state)
		}
		return st.Done()
	})
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	return states, nil
}

const selectSchedules = `SELECT name, version, timing, last, fired, last_job, paused_at, gone_at, open, waiting, sum
	FROM schedule ORDER BY name`

// scanSchedule returns the state that a row holds.
func scanSchedule(st *sqlitedb.Stmt) (record.ScheduleState, error) {
	state := record.ScheduleState{
		Name:     st.ColText(0),
		Version:  st.ColInt(1),
		Timing:   st.ColText(2),
		Last:     record.Millis(st.ColInt(3)),
		Fired:    record.Millis(st.ColInt(4)),
		LastJob:  st.ColText(5),
		PausedAt: record.Millis(st.ColInt(6)),
		GoneAt:   record.Millis(st.ColInt(7)),
	}
	open, waiting := st.ColText(8), st.ColText(9)
	if !st.ColSum(10, scheduleSum(&state, state.Version, open, waiting)) {
		return state, sqlitedb.Damaged("the state of schedule %s", state.Name)
	}
	if open != "" {
		if err := json.Unmarshal([]byte(open), &state.Open); err != nil {
			return state, fmt.Errorf("schedule %s: %w", state.Name, err)
		}
	}
	if waiting != "" {
		if err := json.Unmarshal([]byte(waiting), &state.Waiting); err != nil {
			return state, fmt.Errorf("schedule %s: %w", state.Name, err)
		}
	}
	return state, nil
}
