package pgqueue

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// note keeps or removes a text.
func note(s *pgdb.Session, op *record.Note) error {
	if op.Text == "" {
		_, err := s.Exec("DELETE FROM jobhost.note WHERE name=$1", op.Name)
		return err
	}
	_, err := s.Exec("INSERT INTO jobhost.note (name, text) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET text=excluded.text", op.Name, op.Text)
	return err
}
