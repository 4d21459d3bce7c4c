package pgpayload

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/state/payload"
)

// SetMark implements [payload.Marker].
func (s *Store) SetMark(ctx context.Context, name string, text []byte) error {
	if err := payload.CheckName(name); err != nil {
		return err
	}
	return s.db.Send(ctx, func(b *pgx.Batch) {
		b.Queue(s.db.SQL(`INSERT INTO jobhost.payload_mark VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET content=excluded.content`),
			name, append([]byte{}, text...)) // nil would be NULL
	})
}

// Mark implements [payload.Marker].
func (s *Store) Mark(ctx context.Context, name string) (text []byte, err error) {
	found := false
	err = s.db.Send(ctx, func(b *pgx.Batch) {
		b.Queue(s.db.SQL("SELECT content FROM jobhost.payload_mark WHERE name=$1"), name).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&text}, func() error { found = true; return nil })
			return err
		})
	})
	if err == nil && !found {
		err = payload.ErrNotFound
	}
	return text, err
}
