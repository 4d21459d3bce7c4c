package pgpayload

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	deleteAtOnce = 64  // objects
	removeAtOnce = 128 // pieces in one transaction, 32 MiB, so that none takes long
	// cutOffAfter is how long after its last piece an upload counts as cut off. A guest may be silent for as long as an attempt
	// may take, a day.
	cutOffAfter = 48 * time.Hour
)

// Delete implements [payload.Store]. Objects are gone at once; their pieces are removed afterwards. If that is interrupted,
// Sweep does the rest.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	for some := range slices.Chunk(keys, deleteAtOnce) {
		err := s.db.Send(ctx, func(b *pgx.Batch) {
			b.Queue(s.db.SQL("UPDATE jobhost.payload_partial SET dead=true WHERE key=ANY($1)"), some)
			b.Queue(s.db.SQL(`WITH gone AS (DELETE FROM jobhost.payload_object WHERE key=ANY($1) RETURNING key)
				INSERT INTO jobhost.payload_partial (key, written, dead) SELECT key, now(), true FROM gone
				ON CONFLICT (key) DO UPDATE SET dead=true`), some)
		})
		if err == nil {
			err = s.remove(ctx, some)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes the pieces of dead uploads and objects, and then their rows in payload_partial.
func (s *Store) remove(ctx context.Context, keys []string) error {
	ranges, err := s.dead(ctx, keys)
	if err != nil {
		return err
	}
	for len(ranges) > 0 {
		n, pieces := 0, int64(0)
		for ; n < len(ranges) && pieces+ranges[n].size() <= removeAtOnce; n++ {
			pieces += ranges[n].size()
		}
		err := s.db.Send(ctx, func(b *pgx.Batch) {
			for _, r := range ranges[:n] {
				b.Queue(s.db.SQL("DELETE FROM jobhost.payload_piece WHERE key=$1 AND n>=$2 AND n<$3"), r.key, r.from, r.to)
			}
		})
		if err != nil {
			return err
		}
		ranges = ranges[n:]
	}
	return s.db.Send(ctx, func(b *pgx.Batch) {
		b.Queue(s.db.SQL("DELETE FROM jobhost.payload_partial WHERE key=ANY($1) AND dead"), keys)
	})
}

// pieces is a range of pieces of an object.
type pieces struct {
	key      string
	from, to int64
}

func (p pieces) size() int64 { return p.to - p.from }

// dead returns the pieces of dead uploads and objects, in ranges that one transaction can remove. It leaves out objects that
// exist: a repeated statement of an upload may have arrived after the object was complete.
func (s *Store) dead(ctx context.Context, keys []string) (ranges []pieces, err error) {
	err = s.db.Send(ctx, func(b *pgx.Batch) {
		ranges = nil
		b.Queue(s.db.SQL(`SELECT p.key, (SELECT coalesce(max(d.n), -1) FROM jobhost.payload_piece d WHERE d.key=p.key)
			FROM jobhost.payload_partial p WHERE p.key=ANY($1) AND p.dead
			AND NOT EXISTS (SELECT FROM jobhost.payload_object o WHERE o.key=p.key)`), keys).Query(func(rows pgx.Rows) error {
			var key string
			var last int64
			_, err := pgx.ForEachRow(rows, []any{&key, &last}, func() error {
				for from := int64(0); from <= last; from += removeAtOnce {
					ranges = append(ranges, pieces{key, from, min(from+removeAtOnce, last+1)})
				}
				return nil
			})
			return err
		})
	})
	return ranges, err
}

// Sweep implements [payload.Sweeper].
func (s *Store) Sweep(ctx context.Context) error {
	for {
		var keys []string
		err := s.db.Send(ctx, func(b *pgx.Batch) {
			b.Queue(s.db.SQL("UPDATE jobhost.payload_partial SET dead=true WHERE NOT dead AND written<now()-make_interval(secs => $1)"), cutOffAfter.Seconds())
			b.Queue(s.db.SQL("SELECT key FROM jobhost.payload_partial WHERE dead LIMIT $1"), deleteAtOnce).Query(func(rows pgx.Rows) (err error) {
				keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
				return err
			})
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := s.remove(ctx, keys); err != nil {
			return err
		}
	}
}
