// Package pgpayload keeps payloads in the PostgreSQL that hosts share, so that they need no other store. It implements
// [payload.Store].
//
//	payload_object   how many pieces there are: it comes last, so that an object is there whole or not
//	payload_piece    the pieces, of up to 256 KiB
//	payload_partial  of which objects there may be pieces that no object has: they are being written or removed
//	payload_mark     marks: see [payload.Marker]
//
// Any host may read and write, whichever leads: an object belongs to the one upload that writes it, and is never changed
// after that. No transaction lasts longer than one message, and no connection is held between two of them, so neither
// a slow guest nor a slow client is anything that the database notices.
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
