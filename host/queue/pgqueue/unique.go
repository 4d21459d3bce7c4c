package pgqueue

import (
	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

type uniqKey struct {
	worker int64
	name   string
}

// uniqRow is the job that holds a unique key, and the job's id.
type uniqRow struct {
	job, until int64
	id         string
}

func (r *jobRows) initUniq() {
	r.uniq = pgdb.Table[uniqKey, uniqRow]{
		DB: r.db,
		SQL: `SELECT u.worker, u.name, u.job, u.until, j.id FROM unnest($1::bigint[], $2::text[]) AS t(worker, name)
			JOIN jobhost.uniq u ON u.worker=t.worker AND u.name=t.name JOIN jobhost.job j ON j.seq=u.job`,
		Args: func(keys []uniqKey) []any {
			return []any{column(keys, func(k *uniqKey) int64 { return k.worker }), column(keys, func(k *uniqKey) string { return k.name })}
		},
		Scan: func(rows pgx.Rows) (k uniqKey, u uniqRow, err error) {
			err = rows.Scan(&k.worker, &k.name, &u.job, &u.until, &u.id)
			return k, u, err
		},
	}
}

// taken answers a submit whose unique key another job holds.
func (im *image) taken(tx *pgdb.Tx, job *record.JobSpec, worker int64, res *record.OpResult) bool {
	if job.UniqueKey == "" {
		return false
	}
	u := im.jobs.uniq.Get(tx, uniqKey{worker, job.UniqueKey})
	if u == nil || u.until != 0 && u.until <= int64(job.CreatedAt) {
		return false
	}
	res.Key, res.ID, res.Existing = record.Key(u.job), u.id, true
	return true
}

func (r *jobRows) flushUniq(b *pgx.Batch) {
	var keys []uniqKey
	var rows []uniqRow
	for c := range r.uniq.Changes() {
		if c.Is != nil { // otherwise it goes with its job
			keys, rows = append(keys, c.Key), append(rows, *c.Is)
		}
	}
	if len(keys) == 0 {
		return
	}
	b.Queue(r.db.SQL(`INSERT INTO jobhost.uniq (worker, name, job, until) SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[])
		ON CONFLICT (worker, name) DO UPDATE SET job=excluded.job, until=excluded.until`),
		column(keys, func(k *uniqKey) int64 { return k.worker }), column(keys, func(k *uniqKey) string { return k.name }),
		column(rows, func(u *uniqRow) int64 { return u.job }), column(rows, func(u *uniqRow) int64 { return u.until }))
}
