package pgstate

import "github.com/jobhost/jobhost/internal/pgdb"

// Occupied reports whether the tables hold states already that an import would overwrite.
func Occupied(s *pgdb.Session) (there bool, err error) {
	_, err = s.One([]any{&there}, "SELECT EXISTS (SELECT FROM jobhost.state_job)")
	return there, err
}
