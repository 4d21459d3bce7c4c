// Package pgpayload keeps payloads in the PostgreSQL that hosts share, so that they need no other store. It implements
// [payload.Store].
//
//	payload_object   the objects with their numbers of pieces; a row is written last, so that objects are complete or absent
//	payload_piece    their pieces, of up to 256 KiB
//	payload_partial  objects that are being written or removed, by which leftover pieces are found
//	payload_mark     marks: see [payload.Marker]
//
// Any host may read and write, not only the leader: an object is written by one upload, and never changed afterwards. A
// transaction is one message, and no connection is held between two messages, so slow guests and clients don't burden the
// database.
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

// New returns a store in a database, which has the tables of [Schemas]. Closing the store leaves the database open.
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
