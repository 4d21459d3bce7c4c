package pgpayload

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/state/payload"
)

// readAtOnce is how many pieces are read in one message, and kept in memory.
const readAtOnce = 4

// Open implements [payload.Store].
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if _, ok := payload.KeyTime(key); !ok {
		return nil, payload.ErrNotFound
	}
	r := &reader{db: s.db, ctx: ctx, key: key}
	found := false
	err := s.db.Send(ctx, func(b *pgx.Batch) {
		b.Queue(s.db.SQL("SELECT pieces FROM jobhost.payload_object WHERE key=$1"), key).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&r.pieces}, func() error { found = true; return nil })
			return err
		})
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, payload.ErrNotFound
	}
	return r, nil
}

// reader reads a few pieces at a time.
type reader struct {
	db     *pgdb.DB
	ctx    context.Context // of the read
	key    string
	next   int64 // piece
	pieces int64
	buffer []byte
	rest   []byte // of buffer
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.next >= r.pieces {
			return 0, io.EOF
		}
		if err := r.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fetch reads the next pieces.
func (r *reader) fetch() error {
	end := min(r.next+readAtOnce, r.pieces)
	at := r.next
	err := r.db.Send(r.ctx, func(b *pgx.Batch) {
		r.buffer, at = r.buffer[:0], r.next
		b.Queue(r.db.SQL("SELECT data FROM jobhost.payload_piece WHERE key=$1 AND n>=$2 AND n<$3 ORDER BY n"), r.key, r.next, end).
			Query(func(rows pgx.Rows) error {
				var data pgtype.DriverBytes
				_, err := pgx.ForEachRow(rows, []any{&data}, func() error {
					r.buffer = append(r.buffer, data...)
					at++
					return nil
				})
				return err
			})
	})
	switch {
	case err != nil:
		return err
	case at < end:
		return payload.ErrNotFound // it was deleted in between
	}
	r.next, r.rest = end, r.buffer
	return nil
}

// Close implements [io.Closer].
func (r *reader) Close() error {
	r.next, r.buffer, r.rest = r.pieces, nil, nil
	return nil
}
