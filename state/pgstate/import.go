package pgstate

import "github.com/jobhost/jobhost/internal/pgdb"

// Occupied reports whether there are states already in tables that are to be filled from another store.
func Occupied(s *pgdb.Session) (there bool, err error) {
	_, err = s.One([]any{&there}, "SELECT EXISTS (SELECT FROM jobhost.state_job)")
	return there, err
}
