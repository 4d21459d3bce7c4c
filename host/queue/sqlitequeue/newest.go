package sqlitequeue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// Newest implements [queue.Reader]. It doesn't compare the job's checksum, and when its
// page can't be read the spans say nearly the same: the latest time in its block.
func (s *Store) Newest(ctx context.Context) (record.Millis, error) {
	at, err := s.number(ctx, "SELECT created_at FROM job ORDER BY seq DESC LIMIT 1")
	if sqlitedb.IsDamaged(err) {
		at, err = s.number(ctx, "SELECT high FROM span ORDER BY block DESC LIMIT 1")
	}
	if err != nil {
		return 0, fmt.Errorf("read the newest job: %w", err)
	}
	return record.Millis(at), nil
}

// number returns what a statement selects, 0 if there is no row.
func (s *Store) number(ctx context.Context, sql string) (n int64, err error) {
	err = s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		st := r.Stmt(sql)
		if st.Step() {
			n = st.ColInt(0)
		}
		return st.Done()
	})
	return n, err
}
