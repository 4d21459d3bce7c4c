package pgqueue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
)

// Schedules returns the states of all schedules, by name.
func (s *Store) Schedules(ctx context.Context) (states []record.ScheduleState, err error) {
	var row record.ScheduleState
	var open, waiting string
	err = s.ask(ctx, func() { states = nil }, []any{
		&row.Name, &row.Version, &row.Timing, &row.Last, &row.Fired, &row.LastJob, &row.PausedAt, &row.GoneAt, &open, &waiting,
	}, func() error {
		state := row
		if err := decode(open, &state.Open); err != nil {
			return fmt.Errorf("schedule %s: %w", state.Name, err)
		}
		if err := decode(waiting, &state.Waiting); err != nil {
			return fmt.Errorf("schedule %s: %w", state.Name, err)
		}
		states = append(states, state)
		return nil
	}, "SELECT name, version, timing, last, fired, last_job, paused_at, gone_at, open, waiting FROM jobhost.schedule ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	return states, nil
}
