package sqlitequeue

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// ScheduleSchema returns the table of the schedules' states.
func ScheduleSchema() sqlitedb.Schema {
	return sqlitedb.Schema{Name: "schedule", Steps: []string{schedule1}}
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
func (l *ledger) fire(tx *sqlitedb.Tx, op *queue.Fire, res *queue.OpResult) error {
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
	res.Fired = make([]queue.OpResult, len(op.Jobs))
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

func putSchedule(tx *sqlitedb.Tx, state *queue.ScheduleState) error {
	open, err := textOf(state.Open, len(state.Open))
	if err != nil {
		return err
	}
	waiting, err := textOf(state.Waiting, len(state.Waiting))
	if err != nil {
		return err
	}
	return tx.Stmt(`INSERT OR REPLACE INTO
		schedule(name, version, timing, last, fired, last_job, paused_at, gone_at, open, waiting)
		VALUES(?,?,?,?,?,?,?,?,?,?)`).
		Text(state.Name).Int(state.Version + 1).Text(state.Timing).Int(int64(state.Last)).
		Int(int64(state.Fired)).Text(state.LastJob).Int(int64(state.PausedAt)).Int(int64(state.GoneAt)).
		TextOrNull(open).TextOrNull(waiting).Exec()
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
func (s *Store) Schedules(ctx context.Context) ([]queue.ScheduleState, error) {
	var states []queue.ScheduleState
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt(`SELECT name, version, timing, last, fired, last_job, paused_at, gone_at, open, waiting
			FROM schedule ORDER BY name`)
		for st.Step() {
			state := queue.ScheduleState{
				Name:     st.ColText(0),
				Version:  st.ColInt(1),
				Timing:   st.ColText(2),
				Last:     queue.Millis(st.ColInt(3)),
				Fired:    queue.Millis(st.ColInt(4)),
				LastJob:  st.ColText(5),
				PausedAt: queue.Millis(st.ColInt(6)),
				GoneAt:   queue.Millis(st.ColInt(7)),
			}
			if err := listsOf(st, &state); err != nil {
				return fmt.Errorf("schedule %s: %w", state.Name, err)
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

func listsOf(st *sqlitedb.Stmt, state *queue.ScheduleState) error {
	if text := st.ColText(8); text != "" {
		if err := json.Unmarshal([]byte(text), &state.Open); err != nil {
			return err
		}
	}
	if text := st.ColText(9); text != "" {
		return json.Unmarshal([]byte(text), &state.Waiting)
	}
	return nil
}
