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

// moveStates moves the ids of removed jobs from those with states elsewhere to those whose states are to be deleted.
func moveStates(s *pgdb.Session, ids []string) error {
	_, err := s.Exec(`WITH noted AS (DELETE FROM jobhost.states_noted WHERE id=ANY($1) RETURNING id)
		INSERT INTO jobhost.states_gone (id) SELECT id FROM noted ON CONFLICT DO NOTHING`, ids)
	return err
}

// forgetStates removes jobs whose states were deleted.
func forgetStates(s *pgdb.Session, op *record.ForgetStates) error {
	_, err := s.Exec("DELETE FROM jobhost.states_gone WHERE id=ANY($1)", op.IDs)
	return err
}
