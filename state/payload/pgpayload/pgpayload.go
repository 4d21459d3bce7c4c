// Package pgpayload keeps payloads in the PostgreSQL that hosts share, so that they need no other store. It implements
// [payload.Store].
//
//	payload_object   the objects, each with its number of pieces: it comes last, so that an object is there whole or not
//	payload_piece    their pieces, of up to 256 KiB
//	payload_partial  objects that are being written or removed, so that pieces are found that are left of them
//	payload_mark     marks: see [payload.Marker]
//
// Any host may read and write, whichever leads: only one upload writes an object, which is never changed after that.
// No transaction lasts longer than one message, and no connection is held between two of them, so the database
// notices neither slow guests nor slow clients.
package pgpayload

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/state/payload"
)

// Store is a [payload.Store] in PostgreSQL.
type Store struct{ db *pgdb.DB }

var (
	_ payload.Store   = (*Store)(nil)
	_ payload.Sweeper = (*Store)(nil)
	_ payload.Marker  = (*Store)(nil)
)

// New returns a store in a database, which has the tables of [Schemas] and stays open when the store is closed.
func New(db *pgdb.DB) *Store { return &Store{db} }

// List implements [payload.Store].
func (s *Store) List(ctx context.Context, after string, limit int) (keys []string, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = s.db.Send(ctx, func(b *pgx.Batch) {
		b.Queue(s.db.SQL("SELECT key FROM jobhost.payload_object WHERE key>$1 ORDER BY key LIMIT $2"), after, limit).Query(func(rows pgx.Rows) (err error) {
			keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
	})
	return keys, err
}

// Close implements [payload.Store].
func (s *Store) Close() error { return nil }
