package sqlitedb

import (
	"context"
	"errors"

	"github.com/ncruces/go-sqlite3"
)

// Reader is a read-only connection within [DB.Read].
type Reader struct{ *conn }

// snapshot runs fn in a read transaction.
func (r *Reader) snapshot(ctx context.Context, fn func(*Reader) error) (err error) {
	if err := r.Stmt("BEGIN").Exec(); err != nil {
		return err
	}
	r.db.SetInterrupt(ctx)
	defer func() {
		r.db.SetInterrupt(context.Background())
		r.reset()
		if end := r.Stmt("ROLLBACK").Exec(); err == nil {
			err = end
		}
		if errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	return fn(r)
}
