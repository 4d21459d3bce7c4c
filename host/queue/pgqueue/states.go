package pgqueue

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// noteStates notes that there may be states of a job elsewhere.
func noteStates(s *pgdb.Session, op *record.NoteStates) error {
	_, err := s.Exec("INSERT INTO jobhost.states_noted (id) VALUES ($1) ON CONFLICT DO NOTHING", op.ID)
	return err
}

// moveStates puts ids of jobs that were removed to those whose states are gone, as far as there may be states of them.
func moveStates(s *pgdb.Session, ids []string) error {
	_, err := s.Exec(`WITH noted AS (DELETE FROM jobhost.states_noted WHERE id=ANY($1) RETURNING id)
		INSERT INTO jobhost.states_gone (id) SELECT id FROM noted ON CONFLICT DO NOTHING`, ids)
	return err
}

// forgetStates says that what was left of jobs was deleted.
func forgetStates(s *pgdb.Session, op *record.ForgetStates) error {
	_, err := s.Exec("DELETE FROM jobhost.states_gone WHERE id=ANY($1)", op.IDs)
	return err
}
