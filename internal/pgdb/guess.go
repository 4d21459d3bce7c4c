package pgdb

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Guesser is a [Member] that takes some rows for what they are nearly always, without reading them, since the server
// refuses the commit if one is not.
type Guesser interface {
	// Wrong reports whether the server has refused a commit for a guess. The commit is made again, and the member must
	// make no such guess then. It is called before AfterRollback.
	Wrong(err *pgconn.PgError) bool
}

// guessedWrong reports whether a commit was refused for a guess of one of its members.
func (w *Writer) guessedWrong(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	for _, m := range w.tx.members {
		if g, ok := m.(Guesser); ok && g.Wrong(refused) {
			return true
		}
	}
	return false
}
