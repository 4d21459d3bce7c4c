package pgqueue

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
	"github.com/jobhost/jobhost/state/payload"
)

func (r *jobRows) initRefs() {
	r.refs = pgdb.Table[string, struct{}]{
		DB: r.db,
		SQL: `SELECT t.name FROM unnest($1::text[], $2::text[]) AS t(name, last)
			WHERE EXISTS(SELECT FROM jobhost.object WHERE ref>=t.name COLLATE "C" AND ref<t.last COLLATE "C")
			OR EXISTS(SELECT FROM jobhost.object_gone WHERE ref>=t.name COLLATE "C" AND ref<t.last COLLATE "C")`,
		Args: func(names []string) []any {
			return []any{names, column(names, func(name *string) string { return payload.NameEnd(*name) })}
		},
		Scan: func(rows pgx.Rows) (name string, _ struct{}, err error) {
			err = rows.Scan(&name)
			return name, struct{}{}, err
		},
	}
}

// checkRef refuses a job whose payload belongs to another job.
func (im *image) checkRef(tx *pgdb.Tx, ref string, res *record.OpResult) {
	if im.jobs.refs.Get(tx, payload.NameOf(ref)) != nil {
		res.Err = record.ErrRefTaken()
	}
}

// addObject adds a live reference.
func (im *image) addObject(ref string) {
	im.jobs.objects = append(im.jobs.objects, ref)
	im.jobs.refs.Put(payload.NameOf(ref), struct{}{})
}

// forget removes references that are gone.
func forget(s *pgdb.Session, op *record.Forget) error {
	_, err := s.Exec("DELETE FROM jobhost.object_gone WHERE ref=ANY($1)", op.Refs)
	return err
}

// Gone implements [record.ObjectReader].
func (s *Store) Gone(ctx context.Context, after string, limit int) ([]string, error) {
	refs, err := s.texts(ctx, "SELECT ref FROM jobhost.object_gone WHERE ref>$1 ORDER BY ref LIMIT $2", after, limit)
	if err != nil {
		return nil, fmt.Errorf("read references: %w", err)
	}
	return refs, nil
}

// Live implements [record.ObjectReader].
func (s *Store) Live(ctx context.Context, names []string) (live []bool, err error) {
	known := make([]string, len(names))
	for i, name := range names {
		if storable(name) {
			known[i] = name
		}
	}
	var there bool
	err = s.ask(ctx, func() { live = make([]bool, 0, len(names)) }, []any{&there}, func() error {
		live = append(live, there)
		return nil
	}, `SELECT name<>'' AND EXISTS(SELECT FROM jobhost.object WHERE ref>=name COLLATE "C" AND ref<last COLLATE "C")
		FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS t(name, last, n) ORDER BY n`,
		known, column(known, func(name *string) string { return payload.NameEnd(*name) }))
	if err != nil {
		return nil, fmt.Errorf("read references: %w", err)
	}
	return live, nil
}
